"""From captured graphs to a document of docs/reference/formats.md, dc-graph/1."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._functorch._aot_autograd.descriptors import (
    BufferAOTInput,
    ParamAOTInput,
    PlainAOTInput,
    PlainAOTOutput,
    TangentAOTInput,
)
from torch.fx import Node

from dcrecord.arguments import encode_arguments, plain_name
from dcrecord.capture import Captured
from dcrecord.module_paths import ModulePaths
from dcrecord.partition import JOINT_NODE
from dcrecord.replay import Replayed, is_selection
from dcrecord.workload import Fill


@dataclass(frozen=True)
class Contents:
    """What the tables of a document say beside the graphs.

    parameters   (name, tensor, further names of it) in named_parameters() order
    buffers      contents by name, in named_buffers() order; constants of the code follow
    fills        by input name, in the order of the step's inputs
    """

    parameters: list[tuple[str, Tensor, list[str]]]
    buffers: dict[str, Tensor]
    fills: dict[str, Fill]


@dataclass
class _Tables:
    """The document's tables while they grow: an index of each stands for its entry."""

    values: list[dict[str, Any]] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    schemas: dict[str, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=lambda: {"": 0})
    _value_of_tensor: dict[int, int] = field(default_factory=dict)
    _storage_of_address: dict[int, int] = field(default_factory=dict)

    def value(self, tensor: Tensor, name: str) -> int:
        """Value id of a tensor; a tensor met for the first time becomes a new value called `name`."""
        if id(tensor) not in self._value_of_tensor:
            self._value_of_tensor[id(tensor)] = len(self.values)
            self.values.append(
                {
                    "name": name,
                    "dtype": plain_name(tensor.dtype),
                    "shape": list(tensor.shape),
                    "strides": list(tensor.stride()),
                    "offset": tensor.storage_offset(),
                    "storage": self._storage(tensor),
                }
            )
        return self._value_of_tensor[id(tensor)]

    def find(self, tensor: Tensor) -> int | None:
        return self._value_of_tensor.get(id(tensor))

    def _storage(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        if storage._cdata not in self._storage_of_address:
            self._storage_of_address[storage._cdata] = len(self.storages)
            self.storages.append(storage.nbytes())
        return self._storage_of_address[storage._cdata]


def document_of(captured: Captured, replayed: tuple[Replayed, Replayed], contents: Contents) -> dict[str, Any]:
    """The keys `params` to `graphs` of a dc-graph/1 document."""
    forward, backward = replayed
    tables = _Tables()
    writer = _GraphWriter(tables, ModulePaths(captured.forward), captured)
    params = writer.parameters(contents, forward)
    buffers = writer.buffers(contents, replayed)
    inputs = writer.inputs(contents, forward)
    graphs = [writer.forward(forward), writer.backward(backward, forward)]
    return {
        "params": params,
        "buffers": buffers,
        "inputs": inputs,
        "storages": tables.storages,
        "values": tables.values,
        "schemas": list(tables.schemas),
        "modules": list(tables.modules),
        "graphs": graphs,
    }


class _GraphWriter:
    """Writes the tables of a step's inputs, then its graphs, in value order."""

    def __init__(self, tables: _Tables, paths: ModulePaths, captured: Captured) -> None:
        self.tables = tables
        self.paths = paths
        self.captured = captured
        self.param_index: dict[str, int] = {}
        self.kind_of_value: dict[int, dict[str, Any]] = {}

    def parameters(self, contents: Contents, forward: Replayed) -> list[dict[str, Any]]:
        placeholders = self._placeholders(forward, ParamAOTInput, lambda kind: kind.target.removeprefix("body."))
        entries = []
        for index, (name, parameter, tied) in enumerate(contents.parameters):
            # A tied parameter may have a placeholder for each of its names, of which one is used; one that nothing uses
            # may have none.
            known = [placeholders[each] for each in (name, *tied) if each in placeholders]
            node, tensor = max(known, key=lambda placeholder: bool(placeholder[0].users), default=(None, parameter))
            value = self._known("param", name if node is None else node.name, tensor)
            entry = {"name": name, "value": value, "requires_grad": parameter.requires_grad}
            entries.append({**entry, "tied": tied} if tied else entry)
            self.param_index.update(dict.fromkeys((name, *tied), index))
        return entries

    def buffers(self, contents: Contents, replayed: tuple[Replayed, Replayed]) -> list[dict[str, Any]]:
        """Buffers that a graph uses, then constants of the code."""
        placeholders = self._placeholders(replayed[0], BufferAOTInput, lambda kind: kind.target.removeprefix("body."))
        entries = []
        for name, data in contents.buffers.items():
            if name in placeholders and _is_used(placeholders[name][0], replayed):
                node, tensor = placeholders[name]
                entries.append({"name": name, "value": self._known("buffer", node.name, tensor), "data": base64_of(data)})
        for graph in replayed:
            for node in graph.graph.graph.nodes:
                if node.op != "get_attr" or self.tables.find(graph.values[node]) is not None:
                    continue
                data = getattr(graph.graph, str(node.target))
                value = self._known("buffer", node.name, graph.values[node])
                entries.append({"name": str(node.target), "value": value, "data": base64_of(data)})
        return entries

    def inputs(self, contents: Contents, forward: Replayed) -> list[dict[str, Any]]:
        placeholders = self._placeholders(forward, PlainAOTInput, lambda kind: list(contents.fills)[kind.idx])
        return [
            {
                "name": name,
                "value": self._known("input", placeholders[name][0].name, placeholders[name][1]),
                "fill": fill.to_json(),
            }
            for name, fill in contents.fills.items()
        ]

    def forward(self, graph: Replayed) -> dict[str, Any]:
        ops = [self._op(graph, node, set()) for node in graph.operators()]
        names = self.captured.output_names
        returned = [graph.values[node] for node in graph.outputs()]
        outputs: list[dict[str, Any]] = []
        for position, name in enumerate(names):
            value = self.tables.find(returned[position])
            named = {"kind": "loss", "value": value} if position == 0 else {"kind": "output", "value": value, "name": name}
            outputs.append(named if position == 0 else {**named, "held": True})
        saved: list[int] = []
        for tensor in returned[len(names) :]:
            value = self.tables.find(tensor)
            if value not in self.kind_of_value and value not in saved:
                saved.append(value)
        outputs += [{"kind": "saved", "value": value} for value in saved]
        return {"direction": "forward", "inputs": self._graph_inputs(graph), "outputs": outputs, "ops": ops}

    def backward(self, graph: Replayed, forward: Replayed) -> dict[str, Any]:
        for node in graph.graph.graph.nodes:
            kind = self.captured.input_kinds.get(node.name)
            if node.op == "placeholder" and isinstance(kind, TangentAOTInput):
                output = forward.outputs()[output_of(kind)]
                tangent = self.tables.value(graph.values[node], node.name)
                of = self.tables.find(forward.values[output])
                self.kind_of_value[tangent] = {"kind": "tangent", "value": tangent, "of": of}
        made_forward = {node.meta.get(JOINT_NODE) for node in forward.operators()}
        ops = [self._op(graph, node, made_forward) for node in graph.operators()]
        outputs = []
        for node, name in zip(graph.outputs(), self.captured.gradients_of):
            if name is not None and node is not None:
                param = self.param_index[name.removeprefix("body.")]
                outputs.append({"kind": "gradient", "value": self.tables.find(graph.values[node]), "param": param})
        outputs.sort(key=lambda output: output["param"])
        return {"direction": "backward", "forward": 0, "inputs": self._graph_inputs(graph), "outputs": outputs, "ops": ops}

    def _placeholders(self, graph: Replayed, kind: type, name_of: Any) -> dict[str, tuple[Node, Tensor]]:
        found = {}
        for node in graph.graph.graph.nodes:
            if node.op == "placeholder" and isinstance(self.captured.input_kinds.get(node.name), kind):
                found[name_of(self.captured.input_kinds[node.name])] = (node, graph.values[node])
        return found

    def _known(self, kind: str, name: str, tensor: Tensor) -> int:
        value = self.tables.value(tensor, name)
        self.kind_of_value[value] = {"kind": kind, "value": value}
        return value

    def _graph_inputs(self, graph: Replayed) -> list[dict[str, Any]]:
        """What exists before the graph starts and is used in it, or handed on by it."""
        inputs: dict[int, dict[str, Any]] = {}
        for node in graph.graph.graph.nodes:
            if node.op in ("placeholder", "get_attr") and node.users and isinstance(graph.values[node], Tensor):
                value = self.tables.find(graph.values[node])
                inputs[value] = self.kind_of_value.get(value, {"kind": "saved", "value": value})
        return list(inputs.values())

    def _op(self, graph: Replayed, node: Node, made_forward: set[Any]) -> dict[str, Any]:
        args = encode_arguments(node, lambda argument: self._value_of(graph, argument))
        schema = str(node.target._schema)
        op = {
            "schema": self.tables.schemas.setdefault(schema, len(self.tables.schemas)),
            "args": args,
            "outputs": self._op_outputs(graph, node),
            "module": self.tables.modules.setdefault(self.paths.of(node), len(self.tables.modules)),
        }
        if _returns_list(node):
            op["list"] = True
        if node.meta.get(JOINT_NODE) in made_forward:
            op["recompute"] = True
        return op

    def _value_of(self, graph: Replayed, node: Node) -> int | None:
        held = graph.values[node]
        return self.tables.find(held) if isinstance(held, Tensor) else None

    def _op_outputs(self, graph: Replayed, node: Node) -> list[int | None]:
        held = graph.values[node]
        if isinstance(held, Tensor):
            return [self.tables.value(held, node.name)]
        outputs: list[int | None] = [None] * len(held)
        for user in node.users:
            if is_selection(user) and isinstance(graph.values[user], Tensor):
                outputs[user.args[1]] = self.tables.value(graph.values[user], user.name)
        return outputs


def output_of(kind: TangentAOTInput) -> int:
    """Position of the output that a tangent is the gradient of; the loss is the first."""
    return kind.output.idx if isinstance(kind.output, PlainAOTOutput) and isinstance(kind.output.idx, int) else 0


def _returns_list(node: Node) -> bool:
    returns = node.target._schema.returns
    return len(returns) == 1 and returns[0].type.kind() == "ListType"


def _is_used(placeholder: Node, replayed: tuple[Replayed, Replayed]) -> bool:
    return any(
        node.name == placeholder.name and bool(node.users)
        for graph in replayed
        for node in graph.graph.graph.nodes
        if node.op == "placeholder"
    )


def base64_of(data: Tensor) -> str:
    """Little-endian bytes of the elements in row-major order."""
    plain = data.detach().cpu().contiguous().reshape(-1)
    return base64.b64encode(plain.view(torch.uint8).numpy().tobytes()).decode("ascii")
