"""Activation checkpointing: which modules run their forward again in the backward, and making them do so."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterator

from torch import nn
from torch.utils.checkpoint import checkpoint

from dcrecord.errors import RecorderError, did_you_mean


def checkpoint_blocks(body: nn.Module) -> None:
    """Checkpoints each block of `body`: as transformers does it for its models, else the blocks that repeat."""
    if getattr(body, "supports_gradient_checkpointing", False):
        body.gradient_checkpointing_enable({"use_reentrant": False})
        return
    blocks = list(_repeated_blocks(body))
    if not blocks:
        raise RecorderError(
            "--activation-checkpointing: the module has no ModuleList or Sequential of two or more equal blocks; "
            "expected --checkpoint PATTERN with the paths of the modules to checkpoint"
        )
    _checkpoint(blocks)


def checkpoint_matching(body: nn.Module, patterns: tuple[str, ...]) -> None:
    """Checkpoints the modules whose path matches a pattern; one inside another that matches is part of that one."""
    paths = {path: module for path, module in body.named_modules() if path}
    chosen: dict[str, nn.Module] = {}
    for pattern in patterns:
        matching = fnmatch.filter(paths, pattern)
        if not matching:
            raise RecorderError(f"--checkpoint '{pattern}' matches no module{did_you_mean(pattern, paths)}")
        chosen |= {path: paths[path] for path in matching}
    outermost = [path for path in chosen if not any(path.startswith(f"{other}.") for other in chosen)]
    for path in outermost:
        if type(chosen[path]).forward is nn.Module.forward:
            kind = type(chosen[path]).__name__
            raise RecorderError(f"--checkpoint: '{path}' is a {kind}, which is never called; expected '{path}.*'")
    _checkpoint([chosen[path] for path in outermost])


def _checkpoint(modules: list[nn.Module]) -> None:
    """Replaces each module's forward, and not the module, so that names of parameters stay as they are."""
    for module in modules:
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)


def _repeated_blocks(module: nn.Module) -> Iterator[nn.Module]:
    """Elements of the outermost lists of equal blocks. A block has modules of its own: repeated layers are none."""
    for child in module.children():
        blocks = list(child.children()) if isinstance(child, (nn.ModuleList, nn.Sequential)) else []
        if len(blocks) >= 2 and any(blocks[0].children()) and len({_shape_of(block) for block in blocks}) == 1:
            yield from blocks
        else:
            yield from _repeated_blocks(child)


def _shape_of(block: nn.Module) -> tuple[object, ...]:
    """What equal blocks have in common: class, and names and shapes of the parameters."""
    return (type(block), *((name, tuple(parameter.shape)) for name, parameter in block.named_parameters()))
