"""A step that a document holds, as the FX graphs on fake CUDA tensors that Inductor lowers.

Its graphs are split, and decomposed as Inductor decomposes: those of a running job that DeepCompile compiles.
"""

from __future__ import annotations

import operator
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
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import Graph, GraphModule, Node

from dcrecord.capture import Captured
from dcrecord.cuda_operators import results_on_cuda
from dcrecord.interpret import Document, Interpreter
from dcrecord.replay import DEVICE
from dcrecord.serialise import Contents
from dcrecord.workload import Fill

_aten, _prims = torch.ops.aten, torch.ops.prims


class WrittenStep:
    """The two graphs of `document`, and what the recorder knows of a step that it captured itself.

    captured   its `joint` has the placeholders of both graphs and no operator
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mode = FakeTensorMode(allow_non_fake_inputs=False)
        self._interpreter = Interpreter.of(document, DEVICE)
        self._storages: dict[tuple[int, torch.dtype], Tensor] = {}
        self._tensors: dict[int, Tensor] = {}
        self._residents: list[int] = []
        self._kinds: dict[str, Any] = {}
        self._name_residents()
        written_forward, written_backward = document["graphs"]
        with self.mode, results_on_cuda(), torch.no_grad():
            forward = self._graph(written_forward, [entry["value"] for entry in written_forward["outputs"]])
            self._name_tangents(written_forward, written_backward)
            gradients = [entry for entry in written_backward["outputs"] if entry["kind"] == "gradient"]
            backward = self._graph(written_backward, [entry["value"] for entry in gradients])
        returned = [entry for entry in written_forward["outputs"] if entry["kind"] != "saved"]
        names = [entry["name"] for entry in document["params"]]
        self.captured = Captured(
            forward,
            backward,
            self._kinds,
            [entry.get("name", "loss") for entry in returned],
            [names[entry["param"]] for entry in gradients],
            joint=self._placeholders_alone(),
            updates=0,
        )

    def parameters(self) -> set[str]:
        """Names of the parameters' placeholders."""
        return {name for name, kind in self._kinds.items() if isinstance(kind, ParamAOTInput)}

    def contents(self) -> Contents:
        parameters = []
        for entry in self.document["params"]:
            whole = self._input(entry["value"]).to("meta").requires_grad_(entry["requires_grad"])
            parameters.append((entry["name"], whole, entry.get("tied", [])))
        data = Interpreter.of(self.document, torch.device("cpu")).buffers()
        buffers = {entry["name"]: data[entry["value"]] for entry in self.document["buffers"]}
        fills = {entry["name"]: Fill(entry["fill"].get("vocabulary")) for entry in self.document["inputs"]}
        return Contents(parameters=parameters, buffers=buffers, fills=fills)

    def _name_residents(self) -> None:
        """Placeholders of the step's inputs, in the order of the document's tables."""
        for entry in self.document["params"]:
            self._resident(entry["value"], ParamAOTInput(entry["name"]))
        for entry in self.document["buffers"]:
            self._resident(entry["value"], BufferAOTInput(entry["name"]))
        for index, entry in enumerate(self.document["inputs"]):
            self._resident(entry["value"], PlainAOTInput(index))

    def _name_tangents(self, forward: dict[str, Any], backward: dict[str, Any]) -> None:
        returned = [entry["value"] for entry in forward["outputs"]]
        for entry in backward["inputs"]:
            if entry["kind"] == "tangent":
                output = returned.index(entry["of"])
                self._resident(entry["value"], TangentAOTInput(PlainAOTOutput(output)))

    def _resident(self, value: int, kind: Any) -> None:
        self._kinds[self._name(value)] = kind
        self._residents.append(value)

    def _name(self, value: int) -> str:
        """Of its node: Inductor puts first what has the lesser name, where nothing else decides."""
        return self.document["values"][value]["name"]

    def _input(self, value: int) -> Tensor:
        """The fake tensor of a value that exists before a graph: values in one storage share it."""
        if value not in self._tensors:
            entry = self.document["values"][value]
            dtype = getattr(torch, entry["dtype"])
            key = (entry["storage"], dtype)
            with self.mode:
                if key not in self._storages:
                    elements = self.document["storages"][entry["storage"]] // dtype.itemsize
                    self._storages[key] = torch.empty(elements, dtype=dtype, device=DEVICE)
                layout = (entry["shape"], entry["strides"], entry["offset"])
                self._tensors[value] = self._storages[key].as_strided(*layout)
        return self._tensors[value]

    def _placeholders_alone(self) -> GraphModule:
        graph = Graph()
        for value in self._residents:
            graph.placeholder(self._name(value)).meta["val"] = self._input(value)
        graph.output(())
        return GraphModule(torch.nn.Module(), graph)

    def _graph(self, written: dict[str, Any], returned: list[int]) -> GraphModule:
        """One graph; what it makes gets the names of its nodes."""
        graph = Graph()
        nodes: dict[int, Node] = {}
        for entry in written["inputs"]:
            value = entry["value"]
            nodes[value] = graph.placeholder(self._name(value))
            nodes[value].meta["val"] = self._input(value)
        for op in written["ops"]:
            self._add(graph, op, nodes)
        graph.output(tuple(nodes[value] for value in returned))
        return GraphModule(torch.nn.Module(), graph)

    def _add(self, graph: Graph, op: dict[str, Any], nodes: dict[int, Node]) -> None:
        """One operator, and what its results are."""
        called = self._interpreter.operators[op["schema"]]
        args, kwargs = self._arguments(called, op, nodes)
        called, args, kwargs = _as_inductor_writes(called, args, kwargs)
        (first, *others) = op["outputs"]
        single = not others and not op.get("list")
        name = self._name(first) if single and first is not None else None
        node = graph.create_node("call_function", called, args, kwargs, name)
        node.meta["original_aten"] = called  # by which Inductor names kernels
        if path := self.document["modules"][op["module"]]:
            node.meta["nn_module_stack"] = {path: (path, None)}
        given = torch.fx.node.map_arg((args, kwargs), lambda each: each.meta["val"])
        result = called(*given[0], **given[1])
        node.meta["val"] = result
        if isinstance(result, Tensor):
            self._made(first, node, nodes)
            return
        for index, value in enumerate(op["outputs"]):
            if value is not None:
                selected = graph.create_node("call_function", operator.getitem, (node, index), {}, self._name(value))
                selected.meta = {**node.meta, "val": result[index]}
                self._made(value, selected, nodes)

    def _made(self, value: int | None, node: Node, nodes: dict[int, Node]) -> None:
        if value is not None:
            nodes[value] = node
            self._tensors[value] = node.meta["val"]

    def _arguments(
        self, called: Any, op: dict[str, Any], nodes: dict[int, Node]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """As a trace writes them: what is the default at the end, or a keyword's, is left out."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        needed = 0
        for argument, encoded in zip(called._schema.arguments, op["args"]):
            given = self._interpreter.decode(encoded, nodes)
            is_default = argument.has_default_value() and _same(given, argument.default_value)
            if not argument.kwarg_only:
                args.append(given)
                needed = needed if is_default else len(args)
            elif not is_default:
                kwargs[argument.name] = given
        return tuple(args[:needed]), kwargs


def _same(given: Any, default: Any) -> bool:
    return type(given) is type(default) and given == default


def _as_inductor_writes(called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Casts and counts are operators of torch.prims there; live recordings have ATen's."""
    if called is _aten._to_copy.default and set(kwargs) <= {"dtype", "device"} and "dtype" in kwargs:
        return _prims.convert_element_type.default, (args[0], kwargs["dtype"]), {}
    if called is _aten.arange.start_step and all(isinstance(each, int) for each in args):
        start, end, step = (*args, 1)[:3]
        dtype = kwargs.get("dtype", torch.int64)
        if not dtype.is_floating_point and step > 0:
            length = max(0, -(-(end - start) // step))
            made = {"start": start, "step": step, "dtype": dtype, "device": DEVICE, "requires_grad": False}
            return _prims.iota.default, (length,), made
    return called, args, kwargs
