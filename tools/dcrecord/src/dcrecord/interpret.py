"""Runs a graph document with PyTorch, operator by operator, from what the file says and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dcrecord.errors import RecorderError

Document = dict[str, Any]
# Called after each op with the op and what it returned, in the order of the op's outputs.
Observer = Callable[[dict[str, Any], list[Any]], None]


@dataclass(frozen=True)
class Interpreter:
    """Runs the graphs of one document on one device."""

    document: Document
    device: torch.device
    operators: tuple[Any, ...]

    @staticmethod
    def of(document: Document, device: torch.device) -> Interpreter:
        return Interpreter(document, device, tuple(find_operator(schema) for schema in document["schemas"]))

    def buffers(self) -> dict[int, Tensor]:
        """Contents of the document's buffers by value id."""
        return {entry["value"]: self._buffer(entry) for entry in self.document["buffers"]}

    def _buffer(self, entry: dict[str, Any]) -> Tensor:
        value = self.document["values"][entry["value"]]
        dtype, contents = getattr(torch, value["dtype"]), bytearray(base64.b64decode(entry["data"]))
        data = torch.frombuffer(contents, dtype=dtype) if contents else torch.empty(0, dtype=dtype)
        return self.place(entry["value"], data.reshape(value["shape"]))

    def place(self, value_id: int, data: Tensor) -> Tensor:
        """A copy of `data` on the device, with the strides that the document gives to the value."""
        value = self.document["values"][value_id]
        tensor = torch.empty_strided(
            value["shape"], value["strides"], dtype=getattr(torch, value["dtype"]), device=self.device
        )
        return tensor.copy_(data)

    @torch.no_grad()
    def run(self, graph: dict[str, Any], given: dict[int, Tensor], observe: Observer | None = None) -> dict[int, Tensor]:
        """Runs one graph.

        given   tensors of the graph's inputs by value id
        Returns the graph's outputs by value id.
        """
        held = {entry["value"]: given[entry["value"]] for entry in graph["inputs"]}
        keep = {entry["value"] for entry in graph["outputs"]}
        last_use = _last_uses(graph)
        for position, op in enumerate(graph["ops"]):
            results = self._call(op, held)
            if observe is not None:
                observe(op, results)
            for value, result in zip(op["outputs"], results):
                if value is not None:
                    held[value] = result
            for value in last_use.get(position, ()):
                if value not in keep:
                    del held[value]
        return {value: held[value] if value in held else given[value] for value in keep}

    def _call(self, op: dict[str, Any], held: dict[int, Tensor]) -> list[Any]:
        operator = self.operators[op["schema"]]
        positional, keywords = [], {}
        for argument, encoded in zip(operator._schema.arguments, op["args"]):
            decoded = self.decode(encoded, held)
            if argument.kwarg_only:
                keywords[argument.name] = decoded
            else:
                positional.append(decoded)
        returned = operator(*positional, **keywords)
        return list(returned) if isinstance(returned, (tuple, list)) else [returned]

    def decode(self, encoded: Any, held: Mapping[int, Any]) -> Any:
        """An argument as the document encodes it; of a tensor, what `held` has for its value."""
        if isinstance(encoded, list):
            return [self.decode(element, held) for element in encoded]
        if not isinstance(encoded, dict):
            return encoded
        ((kind, content),) = encoded.items()
        if kind == "v":
            return held[content]
        if kind == "vs":
            return [None if value is None else held[value] for value in content]
        if kind == "f":
            return float(content)
        if kind == "device":
            return self.device if content == "local" else torch.device(content)
        if kind == "memory_format":
            return getattr(torch, f"{content}_format" if content in ("contiguous", "preserve") else content)
        return getattr(torch, content)


def find_operator(schema: str) -> Any:
    """The operator of this PyTorch with exactly this schema."""
    qualified = schema.partition("(")[0]
    namespace, _, name = qualified.partition("::")
    packet, _, overload = name.partition(".")
    operator = getattr(getattr(getattr(torch.ops, namespace), packet, None), overload or "default", None)
    if operator is None or str(operator._schema) != schema:
        found = "no such operator" if operator is None else f"'{operator._schema}'"
        raise RecorderError(f"this PyTorch ({torch.__version__}) has {found}: expected '{schema}'")
    return operator


def _last_uses(graph: dict[str, Any]) -> dict[int, list[int]]:
    """By position of an op: values that no later op reads."""
    last: dict[int, int] = {}
    for position, op in enumerate(graph["ops"]):
        for value in [*values_read(op), *(value for value in op["outputs"] if value is not None)]:
            last[value] = position
    uses: dict[int, list[int]] = {}
    for value, position in last.items():
        uses.setdefault(position, []).append(value)
    return uses


def values_read(op: dict[str, Any]) -> list[int]:
    """Value ids among an op's arguments."""
    read: list[int] = []
    for argument in op["args"]:
        if isinstance(argument, dict) and "v" in argument:
            read.append(argument["v"])
        elif isinstance(argument, dict) and "vs" in argument:
            read.extend(value for value in argument["vs"] if value is not None)
    return read
