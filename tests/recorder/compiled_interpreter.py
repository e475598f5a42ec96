"""Runs a compiled form with PyTorch on a CPU: kernels by their stand-ins, values in the memory that the file gives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from dcrecord.interpret import Interpreter, Observer, find_operator
from torch import Tensor

_VIEW = "aten::as_strided("


@dataclass(frozen=True)
class CompiledInterpreter(Interpreter):
    """memory: of a storage, in this micro-step; the forward's is there for the backward."""

    memory: dict[int, Tensor] = field(default_factory=dict)

    @staticmethod
    def of(document: dict[str, Any], device: torch.device) -> CompiledInterpreter:
        return CompiledInterpreter(document, device, tuple(find_operator(schema) for schema in document["schemas"]))

    @torch.no_grad()
    def run(self, graph: dict[str, Any], given: dict[int, Tensor], observe: Observer | None = None) -> dict[int, Tensor]:
        if graph["direction"] == "forward":
            self.memory.clear()
        held = {entry["value"]: given[entry["value"]] for entry in graph["inputs"]}
        for op in graph["ops"]:
            if "kernel" in op:
                self._launch(op, held)
            elif self.document["schemas"][op["schema"]].startswith(_VIEW):
                self._view(op, held)
            else:
                self._keep(op, self._call(op, held), held)
        return {entry["value"]: held.get(entry["value"], given.get(entry["value"])) for entry in graph["outputs"]}

    def _launch(self, op: dict[str, Any], held: dict[int, Tensor]) -> None:
        held.update({value: self._place_of(value) for value in op["outputs"]})
        own = {index: held[given["v"]] for index, given in enumerate(op["args"]) if isinstance(given, dict)}
        for step in self.document["kernels"][op["kernel"]]["computes"]:
            own.update(zip(step["outputs"], self._call(step, own)))

    def _view(self, op: dict[str, Any], held: dict[int, Tensor]) -> None:
        base, shape, strides, offset = op["args"]
        tensor = held[base["v"]]
        moved = tensor.storage_offset() - self.document["values"][base["v"]]["offset"]
        held[op["outputs"][0]] = torch.as_strided(tensor, shape, strides, offset + moved)

    def _keep(self, op: dict[str, Any], results: list[Any], held: dict[int, Tensor]) -> None:
        """In-place operators give a tensor that lies where it should."""
        for value, result in zip(op["outputs"], results):
            if value is None:
                continue
            place = self._place_of(value)
            held[value] = result if result.data_ptr() == place.data_ptr() else place.copy_(result)

    def _place_of(self, value: int) -> Tensor:
        """New memory holds NaN, so that what nobody has written shows."""
        entry = self.document["values"][value]
        storage, size = entry["storage"], self.document["storages"][entry["storage"]]
        if storage not in self.memory:
            self.memory[storage] = torch.full((size,), 0xFF, dtype=torch.uint8)
        tensor = torch.empty(0, dtype=getattr(torch, entry["dtype"]))
        return tensor.set_(self.memory[storage].untyped_storage(), entry["offset"], entry["shape"], entry["strides"])
