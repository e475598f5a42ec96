"""From lowered programs to a document of docs/reference/formats.md, dc-graph/1, whose ops are kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from dcrecord.arguments import encode_call, plain_name
from dcrecord.errors import RecorderError
from dcrecord.inductor.kernels import describe_kernel
from dcrecord.inductor.lines import Alias, Allocate, Call, Launch, Layout, Program, Reuse, Tensor
from dcrecord.inductor.loop_values import NoStandIn
from dcrecord.inductor.releases import RELEASE
from dcrecord.module_paths import ModulePaths

_VIEW = torch.ops.aten.as_strided.default


@dataclass
class Tables:
    """The document's tables while they grow: an index of each stands for its entry.

    without_stand_in   by name of a kernel whose stand-in was asked for: why it has none
    """

    values: list[dict[str, Any]] = field(default_factory=list)
    storages: list[int] = field(default_factory=list)
    schemas: dict[str, int] = field(default_factory=dict)
    modules: dict[str, int] = field(default_factory=lambda: {"": 0})
    kernels: dict[str, dict[str, Any]] = field(default_factory=dict)  # by source
    without_stand_in: dict[str, str] = field(default_factory=dict)

    def storage(self, size: int) -> int:
        self.storages.append(size)
        return len(self.storages) - 1

    def value(self, name: str, layout: Layout, storage: int) -> int:
        self.values.append(
            {
                "name": name,
                "dtype": layout.dtype,
                "shape": list(layout.shape),
                "strides": list(layout.strides),
                "offset": layout.offset,
                "storage": storage,
            }
        )
        return len(self.values) - 1

    def tensor(self, name: str, tensor: torch.Tensor) -> int:
        """A value in a storage of its own, laid out as `tensor`."""
        size = tensor.untyped_storage().nbytes()
        layout = Layout(plain_name(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), 0, size)
        return self.value(name, layout, self.storage(size))

    def schema(self, operator: Any) -> int:
        return self.schemas.setdefault(str(operator._schema), len(self.schemas))

    def module(self, path: str) -> int:
        return self.modules.setdefault(path, len(self.modules))

    def kernel(self, launch: Launch, source: str) -> int:
        if source not in self.kernels:
            entry = describe_kernel(launch.kernel, source, launch.signature, launch.facts)
            operators = dict.fromkeys(str(node.meta.get("original_aten", node.target)) for node in launch.origins)
            self.kernels[source] = {**entry, "aten": list(operators), **self._computes(launch)}
        elif self.kernels[source].get("computes", []) != self._computes(launch).get("computes", []):
            raise RecorderError(f"two launches of Inductor's {launch.kernel} compute different things: expected one source to do one")
        return list(self.kernels).index(source)

    def _computes(self, launch: Launch) -> dict[str, Any]:
        if launch.stand_in is None:
            return {}
        if isinstance(launch.stand_in, NoStandIn):
            self.without_stand_in[launch.kernel] = str(launch.stand_in)
            return {}
        return {"computes": launch.stand_in.to_json(self.schema)}


@dataclass(frozen=True)
class _Pending:
    """A buffer that has memory and that nothing has written. `reuses`: it takes over the storage of others."""

    layout: Layout
    storage: int
    reuses: bool = False


class GraphWriter:
    """Writes the ops of one direction.

    known   value ids by name of a buffer; grows by what the graph makes
    held    of them, buffers of the module: what changes them leaves its result there for the next step
    """

    def __init__(self, tables: Tables, paths: ModulePaths, known: dict[str, int], held: frozenset[int]) -> None:
        self.tables = tables
        self.paths = paths
        self.known = known
        self.held = held
        self.ops: list[dict[str, Any]] = []
        self.used: dict[int, None] = {}  # values that exist before the graph and are read in it
        self._made: set[int] = set()
        self._reusing: set[int] = set()
        self._pending: dict[str, _Pending] = {}
        self._views: dict[tuple[int, Layout], int] = {}
        self._module = 0

    def write(self, program: Program) -> list[int | None]:
        """The value ids of what the graph returns."""
        for step in program.steps:
            if isinstance(step, Allocate):
                self._pending[step.name] = _Pending(step.layout, self.tables.storage(step.layout.bytes))
            elif isinstance(step, Reuse):
                self._reuse(step)
            elif isinstance(step, Alias):
                self._alias(step)
            elif isinstance(step, Launch):
                self._launch(step, program.sources[step.kernel])
            elif step.operator is RELEASE:
                self.known[step.results[0][0]] = self._read(step.args[0])
            else:
                self._call(step)
        self._module = 0
        return [None if output is None else self._read(output) for output in program.outputs]

    def _reuse(self, step: Reuse) -> None:
        storage = self._storage_of(step.old)
        unwritten = self._pending.pop(step.old, None)
        self._pending[step.name] = _Pending(step.layout, storage, reuses=unwritten is None or unwritten.reuses)

    def _storage_of(self, name: str) -> int:
        if name in self._pending:
            return self._pending[name].storage
        return self.tables.values[self.known[name]]["storage"]

    def _alias(self, step: Alias) -> None:
        """A name for a part of a buffer, which may have to be written yet."""
        tensor = step.tensor
        if tensor.name in self._pending:
            whole = self._pending[tensor.name]
            self._pending[step.name] = _Pending(tensor.view or whole.layout, whole.storage)
        else:
            self.known[step.name] = self._read(tensor)

    def _launch(self, launch: Launch, source: str) -> None:
        self._module = self._module_of(launch.origins)
        given = list(zip(launch.signature, launch.args))
        storages = {self._storage_of(arg.name) for _, arg in given if isinstance(arg, Tensor)}
        reads = [[self._use(self.known[name]), size] for name, size in launch.reads.items() if self._is_read(name, storages)]
        outputs, args = [], []
        for key, arg in given:
            if isinstance(arg, int):
                args.append(arg)
                continue
            if _is_written(key, launch.facts) and self.known.get(arg.name) not in self.held:
                outputs.append(self._written(arg.name))
            args.append({"v": self._read(arg)})
        writes = [[self.known[name], size] for name, size in launch.writes.items() if self._is_read(name, storages)]
        kernel = self.tables.kernel(launch, source)
        op = {"kernel": kernel, "args": args, "outputs": outputs, "reads": reads, "writes": writes}
        self._add({**op, "module": self._module})

    def _add(self, op: dict[str, Any]) -> None:
        reused = [value for value in op["outputs"] if value in self._reusing]
        self.ops.append({**op, "reuses": reused} if reused else op)

    def _is_read(self, name: str, storages: set[int]) -> bool:
        """Whether a buffer of Inductor's exists outside of a kernel that has arguments in these storages."""
        return name in self.known and self.tables.values[self.known[name]]["storage"] in storages

    def _call(self, call: Call) -> None:
        self._module = self._module_of(call.origins)
        args = encode_call(call.operator, call.args, call.kwargs, self._read)
        if call.into is not None:
            outputs: list[int | None] = [self._produce(call.into)]
        else:
            outputs = [None] * self._count_returns(call)
            for position, (name, layout) in call.results.items():
                outputs[position] = self._make(name, layout, self._storage_of_result(call, position, layout))
            if not call.results and _writes_first_argument(call.operator):
                outputs[0] = self._changed(args[0]["v"])
        self._append(call.operator, args, outputs)

    def _written(self, name: str) -> int:
        """The value of a buffer that a launch fills, or changes: nothing reads the one before any more."""
        if name in self._pending:
            return self._produce(name)
        changed = self._changed(self.known[name])
        self._reusing.add(changed)
        return changed

    def _changed(self, value: int) -> int:
        """A second value in the place of one that an op has changed."""
        held = self.tables.values[value]
        layout = Layout(held["dtype"], tuple(held["shape"]), tuple(held["strides"]), held["offset"], 0)
        changed = self._make(f"{held['name']}_changed", layout, held["storage"])
        self.known.update({name: changed for name, known in self.known.items() if known == value})
        return changed

    def _count_returns(self, call: Call) -> int:
        returns = call.operator._schema.returns
        if len(returns) == 1 and returns[0].type.kind() == "ListType":
            return max(call.results, default=-1) + 1
        return len(returns)

    def _storage_of_result(self, call: Call, position: int, layout: Layout) -> int:
        """Its own; of a view, its argument's."""
        returns = call.operator._schema.returns
        alias = returns[position].alias_info if position < len(returns) else None
        for argument, given in zip(call.operator._schema.arguments, call.args):
            shares = alias is not None and argument.alias_info is not None
            if shares and isinstance(given, Tensor) and argument.alias_info.before_set & alias.before_set:
                return self._storage_of(given.name)
        return self.tables.storage(layout.bytes)

    def _append(self, operator: Any, args: list[Any], outputs: list[int | None]) -> None:
        op = {"schema": self.tables.schema(operator), "args": args, "outputs": outputs, "module": self._module}
        returns = operator._schema.returns
        if len(returns) == 1 and returns[0].type.kind() == "ListType":
            op["list"] = True
        self._add(op)

    def _produce(self, name: str) -> int:
        pending = self._pending.pop(name)
        value = self._make(name, pending.layout, pending.storage)
        if pending.reuses:
            self._reusing.add(value)
        return value

    def _make(self, name: str, layout: Layout, storage: int) -> int:
        self.known[name] = self.tables.value(name, layout, storage)
        self._made.add(self.known[name])
        return self.known[name]

    def _read(self, tensor: Tensor) -> int:
        """The value that is passed on, after an op that makes the view of it where it is one."""
        if tensor.name in self._pending:
            self._read_whole(tensor.name)
        if tensor.name not in self.known:
            raise RecorderError(f"Inductor reads {tensor.name}, which nothing has made")
        base = self._use(self.known[tensor.name])
        return base if tensor.view is None else self._view(base, tensor.view)

    def _read_whole(self, name: str) -> None:
        """A buffer whose parts were written under names of their own."""
        pending = self._pending.pop(name)
        parts = [value for value in self._made if self.tables.values[value]["storage"] == pending.storage]
        if not parts:
            raise RecorderError(f"Inductor reads {name} before anything writes it")
        self.known[name] = self._view(max(parts), pending.layout, absolute=True)

    def _view(self, base: int, layout: Layout, absolute: bool = False) -> int:
        held = self.tables.values[base]
        if held["dtype"] != layout.dtype:
            raise RecorderError(f"Inductor reads {held['name']} as {layout.dtype}: expected {held['dtype']}")
        offset = layout.offset + (0 if absolute else held["offset"])
        seen = Layout(layout.dtype, layout.shape, layout.strides, offset, 0)
        if (base, seen) not in self._views:
            name = f"{held['name']}_view{len(self._views)}"
            value = self._make(name, seen, held["storage"])
            args = encode_call(_VIEW, [base, list(seen.shape), list(seen.strides), offset], {}, lambda given: given)
            self._append(_VIEW, [{"v": base}, *args[1:]], [value])
            self._views[base, seen] = value
        return self._views[base, seen]

    def _use(self, value: int) -> int:
        if value not in self._made:
            self.used[value] = None
        return value

    def _module_of(self, origins: list[Node]) -> int:
        return self.tables.module(self.paths.of(origins[-1])) if origins else self._module


def _writes_first_argument(operator: Any) -> bool:
    schema = operator._schema
    first = schema.arguments[0].alias_info if schema.arguments else None
    return first is not None and first.is_write and len(schema.returns) == 1


def _is_written(argument: str, facts: dict[str, Any]) -> bool:
    return argument.startswith(("out_ptr", "in_out_ptr", "ws_ptr")) or argument in facts["mutated_arg_names"]
