"""What a module returned: its loss, and the further tensors that its caller gets, however deep they lie.

Dynamo traces this code as part of the step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from dcrecord.errors import RecorderError

_WITHOUT_TENSORS = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.nn.Module)


def split_loss(returned: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the further tensors by name, of what a module returned.

    A mapping or a dataclass (transformers' outputs are both) has its loss under "loss"; a tuple has it first, and its
    other elements are called output_1, output_2, ...; a lone tensor that is no scalar gets the mean of its elements, in
    float32, as its loss, and is itself called "output". A tensor inside of an output is called by its path:
    "past_key_values.0.1".
    """
    if isinstance(returned, torch.Tensor):
        if returned.dim() == 0:
            return returned, {}
        return returned.float().mean(), {"output": returned}
    if isinstance(returned, (tuple, list)):
        named = {("loss" if index == 0 else f"output_{index}"): value for index, value in enumerate(returned)}
    else:
        named = dict(_parts(returned))
    loss = named.pop("loss", None)
    if not isinstance(loss, torch.Tensor) or loss.dim() != 0:
        raise RecorderError(
            "the module does not return a scalar loss: expected a tensor, a tuple whose first element is the "
            "scalar loss, or a mapping with the scalar loss under 'loss'"
        )
    found: dict[str, torch.Tensor] = {}
    for name, value in named.items():
        _collect(value, name, found)
    return loss, found


def is_held(name: str, hold: tuple[str, ...] | None) -> bool:
    """Whether the caller keeps the output called `name`: by its own name, or as part of what it lies in."""
    return hold is None or any(name == each or name.startswith(f"{each}.") for each in hold)


def _collect(value: Any, name: str, found: dict[str, torch.Tensor]) -> None:
    if isinstance(value, torch.Tensor):
        if name in found:
            raise RecorderError(f"the module returns two outputs called '{name}': expected different names")
        found[name] = value
        return
    for key, part in _parts(value):
        _collect(part, f"{name}.{key}", found)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """What lies in a container, by name or position; nothing in numbers, words and the like."""
    if value is None or isinstance(value, _WITHOUT_TENSORS):
        return []
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, (tuple, list)):
        return [(str(index), part) for index, part in enumerate(value)]
    if dataclasses.is_dataclass(value):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if hasattr(value, "__iter__"):  # caches of transformers
        return [(str(index), part) for index, part in enumerate(value)]
    raise RecorderError(
        f"the module returns an object of class {type(value).__name__}, whose tensors cannot be listed: expected tuples, "
        "lists, mappings and dataclasses"
    )
