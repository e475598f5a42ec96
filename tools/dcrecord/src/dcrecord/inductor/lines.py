"""What Inductor's generated wrapper would do, in order: its lines, kept behind its own planning of memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen import common, wrapper
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import get_dtype_size
from torch._inductor.virtualized import V
from torch.fx import Node

from dcrecord.arguments import TensorReference, plain_name
from dcrecord.errors import RecorderError
from dcrecord.inductor.kernel_nodes import node_of_launch
from dcrecord.inductor.kernels import source_of
from dcrecord.inductor.loop_values import NoStandIn
from dcrecord.inductor.stand_in import StandIn, stand_in_of
from dcrecord.inductor.traffic import traffic_of

# Lines that run nothing on the device and allocate nothing.
_SILENT = (
    "CommentLine",
    "NullLine",
    "EnterDeviceContextManagerLine",
    "ExitDeviceContextManagerLine",
    "LineContext",
    "SymbolicCallArgLine",
    "UnbackedSymbolDefsLine",
)
# A second half of a split reduction, which Inductor writes as PyTorch's own operators.
_ROW_SUM = re.compile(
    r"(?P<result>\w+) = (?P<base>\w+)\[(?P<part>\d+) \* \d+ \* \d+ : .*\]\.view\((?P<rows>\d+), (?P<columns>\d+)\)"
    r"\.(?P<operator>sum|amin|amax)\(dim=0\)(?:\.to\(torch\.(?P<dtype>\w+)\))?"
)
_ZERO = re.compile(r"(\w+)\.zero_\(\)")
_FORGET = re.compile(r"\w+ = None")


@dataclass(frozen=True)
class Layout:
    """Of a buffer: dtype, extents and strides in elements, elements before the first, bytes of memory that it needs."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    bytes: int


@dataclass(frozen=True)
class Tensor(TensorReference):
    """An argument: the buffer of that name, or a view of it whose offset counts from the buffer's own."""

    name: str
    view: Layout | None = None


@dataclass(frozen=True)
class Allocate:
    name: str
    layout: Layout


@dataclass(frozen=True)
class Reuse:
    """`name` lies in the memory of `old`, which is not needed any more."""

    name: str
    layout: Layout
    old: str


@dataclass(frozen=True)
class Alias:
    """`name` is another name of a tensor."""

    name: str
    tensor: Tensor


@dataclass
class Call:
    """A call of an operator. `results`: by position, what it returns that has a name; `into`: what it is to fill."""

    operator: Any
    args: list[Any]
    kwargs: dict[str, Any]
    results: dict[int, tuple[str, Layout]] = field(default_factory=dict)
    into: str | None = None
    origins: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Launch:
    """A launch of a Triton kernel. `reads`, `writes`: bytes by name of a buffer; `stand_in`: what the kernel computes, or
    why that has no form, or nothing where it was not asked for."""

    kernel: str
    args: list[Tensor | int]
    signature: dict[str, str]
    facts: dict[str, Any]
    reads: dict[str, int]
    writes: dict[str, int]
    origins: list[Node]
    stand_in: StandIn | NoStandIn | None = None


Step = Allocate | Reuse | Alias | Call | Launch


@dataclass
class Program:
    """One graph as Inductor runs it. `sources`: of its kernels, by name; `outputs`: as the graph returns them; `strides`:
    theirs, where a buffer has some."""

    steps: list[Step]
    sources: dict[str, str]
    outputs: list[Tensor | None]
    strides: list[tuple[int, ...] | None]


class _Wrapper(wrapper.PythonWrapperCodegen):
    """Keeps its lines, each with the scheduler's node that wrote it, and writes no module."""

    @staticmethod
    def create(is_subgraph: bool, subgraph_name: Any, parent: Any, partition_signatures: Any = None) -> Any:
        if is_subgraph:
            raise RecorderError(f"Inductor makes a subgraph ({subgraph_name}): expected one graph")
        return _Wrapper()

    def writeline(self, line: Any) -> None:
        node = getattr(V.graph.scheduler, "current_node", None)
        if isinstance(line, wrapper.KernelCallLine) and line.triton:
            node = node_of_launch(node, line.call_args)
        if isinstance(line, wrapper.WrapperLine):
            line.written_for = node
        super().writeline(line)

    def _generate(self, is_inference: bool) -> tuple[Any, Any]:
        self.run_wrapper_ir_passes(is_inference)
        return None, None


class Captured(Exception):
    """Carries the program out of Inductor before anything is compiled."""

    def __init__(self, program: Program) -> None:
        self.program = program


@contextmanager
def capturing(stand_ins: bool) -> Iterator[None]:
    """Inside, Inductor's compilation ends in Captured. `stand_ins`: launches say what their kernels compute."""

    def stop(graph: GraphLowering) -> None:
        graph.codegen()
        raise Captured(_program_of(graph, stand_ins))

    common.init_backend_registration()
    device = common.device_codegens["cuda"]
    plain_wrapper, plain_end = device.wrapper_codegen, GraphLowering.compile_to_module
    device.wrapper_codegen, GraphLowering.compile_to_module = _Wrapper, stop
    try:
        yield
    finally:
        device.wrapper_codegen, GraphLowering.compile_to_module = plain_wrapper, plain_end


def _program_of(graph: GraphLowering, stand_ins: bool) -> Program:
    reader = _LineReader(stand_ins)
    for line in graph.wrapper_code.lines:
        reader.read(line)
    returned = graph.wrapper_code.get_graph_outputs()
    strides = [tuple(map(_number, output.get_stride())) if hasattr(output, "layout") else None for output in returned]
    return Program(reader.steps, reader.sources, [_argument(output) for output in returned], strides)


class _LineReader:
    """Turns lines into steps; what it does not know is refused by name."""

    def __init__(self, stand_ins: bool = False) -> None:
        self.stand_ins = stand_ins
        self.steps: list[Step] = []
        self.sources: dict[str, str] = {}
        self._call_of: dict[str, Call] = {}
        self._read: dict[str, Callable[[Any], None]] = {
            "AllocateLine": lambda line: self.steps.append(Allocate(line.node.get_name(), _layout(line.node))),
            "ReuseLine": lambda line: self.steps.append(
                Reuse(line.reused_as.get_name(), _layout(line.reused_as), line.node.get_name())
            ),
            "ReinterpretLine": lambda line: self.steps.append(
                Alias(line.reused_as.get_name(), _argument(line.layout.view))
            ),
            "FreeLine": lambda line: None,  # memory goes with the last use of it
            "FreeIfNotReusedLine": lambda line: None,
            "KernelDefinitionLine": self._definition,
            "KernelCallLine": self._launch,
            "ExternKernelOutLine": self._call_into,
            "ExternKernelAllocLine": self._call,
            "MultiOutputLine": self._pick,
            "IndexPutFallbackLine": self._index_put,
            "ScatterFallbackLine": self._scatter,
        }

    def read(self, line: Any) -> None:
        kind = type(line).__name__
        if isinstance(line, str):
            self._text(line)
        elif kind in self._read:
            self._read[kind](line)
        elif kind not in _SILENT:
            raise RecorderError(f"Inductor's line {kind} has no form in a graph file: {str(line)[:120]}")

    def _definition(self, line: Any) -> None:
        self.sources[line.kernel_name] = source_of(line.kernel_body, line.kernel_name)

    def _launch(self, line: Any) -> None:
        if not line.triton:
            raise RecorderError(f"Inductor's kernel {line.kernel_name} is no Triton kernel")
        reads, writes = traffic_of(line.written_for)
        args = [Tensor(arg) if isinstance(arg, str) else _number(arg) for arg in line.call_args]
        signature = dict(line.triton_meta["signature"])
        origins = _origins(line.written_for)
        stand_in = self._stand_in(line.written_for, args) if self.stand_ins else None
        self.steps.append(Launch(line.kernel_name, args, signature, line.inductor_meta, reads, writes, origins, stand_in))

    def _stand_in(self, node: Any, args: list[Tensor | int]) -> StandIn | NoStandIn:
        names = [arg.name if isinstance(arg, Tensor) else None for arg in args]
        reused = {step.old: step.name for step in self.steps if isinstance(step, Reuse)}
        try:
            return stand_in_of(node, names, reused)
        except NoStandIn as reason:
            return reason

    def _call_into(self, line: Any) -> None:
        node = line.node
        name = node.get_kernel_name().removeprefix("extern_kernels.")
        if not hasattr(torch.ops.aten, name):
            raise RecorderError(f"Inductor's call {node.get_kernel_name()} is no ATen operator")
        if node.output_view is not None:
            raise RecorderError(f"Inductor's call {node.get_kernel_name()} fills a view: expected a whole buffer")
        args = [_argument(each) for each in [*node.inputs, *node.constant_args]]
        kwargs = {key: _argument(value) for key, value in (node.kwargs or {}).items() if key != "out"}
        operator = getattr(torch.ops.aten, name).default
        self._add(Call(operator, args, kwargs, into=node.get_name(), origins=_origins(line.written_for)), node)

    def _call(self, line: Any) -> None:
        node = line.node
        operator = node.op_overload
        if not isinstance(operator, torch._ops.OpOverload):
            raise RecorderError(f"Inductor's call {node.get_kernel_name()} is no operator of PyTorch: {operator}")
        held = [_Held(_argument(each)) for each in node.inputs]
        if hasattr(node, "unflatten_args"):
            args, kwargs = node.unflatten_args(held, node.constant_args)
            kwargs = {**(node.kwargs or {}), **kwargs}
        else:
            args, kwargs = [*held, *node.constant_args], node.kwargs or {}
        call = Call(
            operator,
            [_argument(each) for each in args],
            {key: _argument(value) for key, value in kwargs.items()},
            origins=_origins(line.written_for),
        )
        if isinstance(node.layout, ir.Layout) and not isinstance(node.layout, (ir.MultiOutputLayout, ir.NoneLayout)):
            call.results[0] = (node.get_name(), _layout(node))
        self._add(call, node)

    def _add(self, call: Call, node: Any) -> None:
        self._call_of[node.get_name()] = call
        self.steps.append(call)

    def _pick(self, line: Any) -> None:
        call = self._call_of[line.arg_name]
        positions = [position for _, position in line.indices]
        if len(positions) > 1:
            raise RecorderError(f"{call.operator} returns lists of lists, which has no form in a graph file")
        position = positions[0] if positions else 0
        call.results[position] = (line.result_name, _layout(V.graph.get_buffer(line.result_name)))

    def _index_put(self, line: Any) -> None:
        node = line.node
        target, values = (_argument(each) for each in node.inputs[:2])
        indices = [None if index is None else _argument(index) for index in line.indices]
        accumulate = [_argument(each) for each in node.constant_args]
        call = Call(torch.ops.aten.index_put_.default, [target, indices, values, *accumulate], {})
        call.origins = _origins(line.written_for)
        self._add(call, node)

    def _scatter(self, line: Any) -> None:
        node = line.node
        tensors = [_argument(each) for each in node.inputs]
        source = tensors[2] if node.src_is_tensor else _argument(node.constant_args[1])
        args = [tensors[0], _argument(node.constant_args[0]), tensors[1], source]
        known = {argument.name for argument in node.op_overload._schema.arguments}
        kwargs = {key: _argument(value) for key, value in (node.kwargs or {}).items() if key in known and value is not None}
        self._add(Call(node.op_overload, args, kwargs, origins=_origins(line.written_for)), node)

    def _text(self, line: str) -> None:
        if _FORGET.fullmatch(line) or line.startswith("assert_"):
            return
        if found := _ZERO.fullmatch(line):
            layout = next(step.layout for step in reversed(self.steps) if getattr(step, "name", None) == found[1])
            zeros = {"dtype": getattr(torch, layout.dtype), "device": torch.device("cuda")}
            self.steps.append(Call(torch.ops.aten.zeros.default, [list(layout.shape)], zeros, into=found[1]))
        elif found := _ROW_SUM.fullmatch(line):
            self._row_sum(found)
        else:
            raise RecorderError(f"Inductor's line has no form in a graph file: {line[:120]}")

    def _row_sum(self, found: re.Match[str]) -> None:
        rows, columns, result = int(found["rows"]), int(found["columns"]), found["result"]
        view = Layout("float32", (rows, columns), (columns, 1), int(found["part"]) * rows * columns, 0)
        flat = Layout("float32", (columns,), (1,), 0, 4 * columns)
        name = f"{found['operator']}.dim_IntList" if found["operator"] == "sum" else f"{found['operator']}.default"
        packet, overload = name.split(".")
        partial = result if found["dtype"] is None else f"{result}_float32"
        reduce = getattr(getattr(torch.ops.aten, packet), overload)
        self.steps.append(Call(reduce, [Tensor(found["base"], view), [0]], {}, {0: (partial, flat)}))
        if found["dtype"] is not None:
            dtype = getattr(torch, found["dtype"])
            cast = Layout(found["dtype"], (columns,), (1,), 0, get_dtype_size(dtype) * columns)
            call = Call(torch.ops.aten._to_copy.default, [Tensor(partial)], {"dtype": dtype}, {0: (result, cast)})
            self.steps.append(call)


@dataclass(frozen=True)
class _Held:
    """An argument that is read already, on its way through Inductor's own unflattening."""

    argument: Any


def _layout(buffer: Any) -> Layout:
    dtype = buffer.get_dtype()
    count = _number(V.graph.get_allocation_storage_size(buffer)) if isinstance(buffer, ir.Buffer) else _number(buffer.count)
    shape, strides = tuple(map(_number, buffer.get_size())), tuple(map(_number, buffer.get_stride()))
    return Layout(plain_name(dtype), shape, strides, 0, count * get_dtype_size(dtype))


def _number(value: Any) -> int:
    if hasattr(value, "inner_expr"):
        value = value.inner_expr
    if isinstance(value, sympy.Expr) and not value.is_Integer:
        raise RecorderError(f"Inductor leaves a size open ({value}): expected static shapes")
    return int(value)


def _argument(given: Any) -> Any:
    """A buffer, a view of one, or a constant."""
    if isinstance(given, _Held):
        return given.argument
    if isinstance(given, (ir.TensorBox, ir.StorageBox, ir.MutableBox)):
        return _argument(given.data)
    if isinstance(given, ir.NoneAsConstantBuffer):
        return None
    if isinstance(given, ir.ReinterpretView):
        layout = given.layout
        shape, strides = tuple(map(_number, layout.size)), tuple(map(_number, layout.stride))
        view = Layout(plain_name(layout.dtype), shape, strides, _number(layout.offset), 0)
        return Tensor(given.data.get_name(), view)
    if isinstance(given, ir.Buffer):
        return Tensor(given.get_name())
    if isinstance(given, ir.IRNode):
        raise RecorderError(f"Inductor passes a {type(given).__name__}, which has no form in a graph file")
    if isinstance(given, (list, tuple)):
        return [_argument(each) for each in given]
    if isinstance(given, sympy.Expr):
        return int(given) if given.is_integer else float(given)
    return given


def _origins(node: Any) -> list[Node]:
    """The operators of the graph that a scheduler's node computes, in the graph's order."""
    if node is None:
        return []
    found = {origin for part in node.get_nodes() if part.node is not None for origin in part.node.get_origins()}
    order = {each: index for index, each in enumerate(V.graph.module.graph.nodes)}
    return sorted((each for each in found if each.op == "call_function"), key=lambda each: order.get(each, -1))
