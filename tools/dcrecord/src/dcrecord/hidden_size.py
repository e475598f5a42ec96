"""The hidden size of a Hugging Face model, by which its Trainer fills in "auto" of a DeepSpeed configuration."""

from __future__ import annotations

from typing import Any

from torch import nn


def hidden_size_of(body: nn.Module) -> int | None:
    """What HfTrainerDeepSpeedConfig.trainer_config_finalize takes of `body.config`, or nothing without one.

    A module without a configuration that only wraps another one is looked through.
    """
    config = _config_of(body)
    for source in (config, getattr(config, "text_config", None)):
        if hasattr(source, "hidden_size"):
            return _whole(source.hidden_size)
        if hasattr(source, "hidden_sizes"):
            return _whole(max(source.hidden_sizes, default=None))
    return None


def _config_of(body: nn.Module) -> Any:
    wrapped = body
    while not hasattr(wrapped, "config"):
        inner = [child for child in wrapped.children() if any(True for _ in child.parameters())]
        if len(inner) != 1:
            return None
        wrapped = inner[0]
    return wrapped.config


def _whole(size: Any) -> int | None:
    return size if isinstance(size, int) and size > 0 else None
