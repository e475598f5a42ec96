"""Arguments of operators in the form of docs/reference/formats.md: in schema order, defaults filled in, nothing implied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from dcrecord.errors import RecorderError

ValueOf = Callable[[Any], int | None]


class TensorReference:
    """What stands for a tensor among arguments, beside a graph's nodes."""


def encode_arguments(node: Node, value_of: ValueOf) -> list[Any]:
    """All arguments of the node's operator.

    value_of   value id of the tensor that a node holds, None when it holds no tensor
    """
    return encode_call(node.target, node.args, node.kwargs, value_of)


def encode_call(operator: Any, args: Sequence[Any], kwargs: dict[str, Any], value_of: ValueOf) -> list[Any]:
    """All arguments of a call of `operator`.

    value_of   value id of the tensor that a node, or a reference, stands for
    """
    encoded = []
    for position, argument in enumerate(operator._schema.arguments):
        if position < len(args) and not argument.kwarg_only:
            given = args[position]
        elif argument.name in kwargs:
            given = kwargs[argument.name]
        elif argument.has_default_value():
            given = argument.default_value
        else:
            raise RecorderError(f"a call of {operator.name()} has no argument '{argument.name}'")
        encoded.append(_encode(given, _element_type(argument), value_of))
    return encoded


def _element_type(argument: Any) -> tuple[str, int | None]:
    """Kind of an argument's elements ("Tensor", "float", "int", "number", ...) and the length of its list.

    The length is None for no list, 0 for a list of any length, n for a list for which one element may stand.
    """
    kind, length = argument.type, None
    while kind.kind() in ("OptionalType", "ListType"):
        if kind.kind() == "ListType":
            length = argument.N or 0
        kind = kind.getElementType()
    return str(kind.annotation_str), length


def _encode(given: Any, expected: tuple[str, int | None], value_of: ValueOf) -> Any:
    kind, length = expected
    if given is None:
        return None
    if isinstance(given, (Node, TensorReference)):
        value = value_of(given)
        return None if value is None else {"v": value}
    if length is not None:
        elements = list(given) if isinstance(given, (list, tuple)) else [given] * length
        return _encode_list(elements, kind, value_of)
    return _encode_one(given, kind)


def _encode_list(elements: list[Any], kind: str, value_of: ValueOf) -> Any:
    if "Tensor" in kind:
        return {"vs": [
            value_of(element) if isinstance(element, (Node, TensorReference)) else None for element in elements
        ]}
    return [_encode_one(element, kind) for element in elements]


def _encode_one(given: Any, kind: str) -> Any:
    if isinstance(given, (bool, str)):
        return given
    if isinstance(given, (int, float)):
        return _encode_number(float(given) if kind == "float" else given)
    if isinstance(given, torch.dtype):
        return {"dtype": plain_name(given)}
    if isinstance(given, torch.layout):
        return {"layout": plain_name(given)}
    if isinstance(given, torch.memory_format):
        return {"memory_format": plain_name(given).removesuffix("_format")}
    if isinstance(given, torch.device):
        return {"device": "local"}
    raise RecorderError(f"an argument of type {type(given).__name__} ({given}) has no form in a graph file")


def _encode_number(number: int | float) -> Any:
    if isinstance(number, float) and not math.isfinite(number):
        return {"f": "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")}
    return number


def plain_name(value: torch.dtype | torch.layout | torch.memory_format) -> str:
    """`torch.bfloat16` -> `bfloat16`."""
    return str(value).removeprefix("torch.")
