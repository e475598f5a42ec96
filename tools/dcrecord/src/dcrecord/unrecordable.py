"""Modules that are refused as they stand, before the minutes that a trace may take."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn
from torch.nn.parameter import is_lazy

from dcrecord.errors import RecorderError


def check_modules(body: nn.Module) -> None:
    """Throws RecorderError for modules and parameters of which no graph of one rank can be made."""
    found = list(_problems(body))
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise RecorderError(found[0] + more)


def _problems(body: nn.Module) -> Iterator[str]:
    for path, module in body.named_modules():
        where = f"module {path}" if path else "the root module"
        if isinstance(module, nn.SyncBatchNorm):
            yield f"{where}: SyncBatchNorm communicates; expected BatchNorm (statistics of one rank)"
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse and module.weight.requires_grad:
            kind = type(module).__name__
            yield f"{where}: {kind}(sparse=True) has sparse gradients, which are not recorded; expected sparse=False"
        for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            if is_lazy(tensor):
                yield (
                    f"{where}: {type(module).__name__}.{name} has no shape until a first call; expected a module with "
                    "its sizes given, or one that has run once"
                )
            elif isinstance(tensor, nn.Parameter) and tensor.numel() == 0:
                full = f"{path}.{name}" if path else name
                yield f"parameter {full} {list(tensor.shape)} has no elements; expected a module without it"
