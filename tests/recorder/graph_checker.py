"""Every rule of docs/reference/formats.md for dc-graph/1, checked on a document without PyTorch and without the recorder.

A second reading of the format: the recorder's output must satisfy it, and test_graph_checker.py shows that each
rule can be broken.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from math import prod
from typing import Any

from schema_text import Argument, Schema, parse_schema

BYTES_OF = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "uint64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
KEYS = "format name recorder options tokens params buffers inputs storages values schemas modules graphs".split()
# Of a compiled form: these, behind the keys before them.
FURTHER_KEYS = {"tokens": "backend", "modules": "kernels"}
RESIDENT = {"param": "params", "buffer": "buffers", "input": "inputs"}
# Operators that return views although their schemas do not say so.
UNDECLARED_VIEWS = ("aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::unsafe_chunk")


def faults_of(document: dict[str, Any]) -> list[str]:
    """All faults, one sentence each; empty for a good document."""
    return list(_Checker(document).faults())


class _Checker:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.values = document["values"]
        self.schemas = [parse_schema(text) for text in document["schemas"]]
        self.storages_seen: set[int] = set()
        self.produced: set[int] = set()
        self.overwritten: set[int] = set()
        self.compiled = "backend" in document

    def faults(self) -> Iterator[str]:
        yield from self._header()
        yield from self._value_table()
        if any(not self._in_range(value) for value in self._ids(self.document["graphs"])):
            yield "a value id is out of range"
            return
        yield from self._resident_tables()
        for kernel in self.document.get("kernels", []):
            for fault in self._stand_in(kernel):
                yield f"stand-in of {kernel['name']}: {fault}"
        for index, graph in enumerate(self.document["graphs"]):
            yield from self._graph(index, graph)
        yield from self._whole_step()

    def _header(self) -> Iterator[str]:
        expected = [key for known in KEYS for key in (known, FURTHER_KEYS.get(known)) if key and (self.compiled or key in KEYS)]
        if list(self.document) != expected:
            yield f"keys {list(self.document)}, expected {expected}"
        if self.document["format"] != "dc-graph/1":
            yield "format is not dc-graph/1"
        if not re.fullmatch(r"[A-Za-z0-9._-]+", self.document["name"]):
            yield "name has other characters than letters, digits, '.', '-', '_'"
        if self.document["modules"][:1] != [""]:
            yield "modules[0] is not the root"

    def _value_table(self) -> Iterator[str]:
        for index, value in enumerate(self.values):
            if not 0 <= value["storage"] < len(self.document["storages"]):
                yield f"value {index}: storage out of range"
                continue
            if len(value["shape"]) != len(value["strides"]):
                yield f"value {index}: as many strides as dimensions expected"
            last = value["offset"] + sum((n - 1) * stride for n, stride in zip(value["shape"], value["strides"]))
            end = (last + 1) * BYTES_OF[value["dtype"]] if prod(value["shape"]) else 0
            if end > self.document["storages"][value["storage"]]:
                yield f"value {index}: reaches beyond its storage"

    def _resident_tables(self) -> Iterator[str]:
        for table in RESIDENT.values():
            for entry in self.document[table]:
                if not self._in_range(entry["value"]):
                    yield f"{table}: value id out of range"
        for buffer in self.document["buffers"]:
            value = self.values[buffer["value"]]
            if len(base64.b64decode(buffer["data"])) != prod(value["shape"]) * BYTES_OF[value["dtype"]]:
                yield f"buffer {buffer['name']}: as many bytes as its elements take expected"
        for entry in self.document["inputs"]:
            kind = entry["fill"]["kind"]
            if kind not in ("tokens", "uniform") or (kind == "tokens") != ("vocabulary" in entry["fill"]):
                yield f"input {entry['name']}: wrong fill"

    def _graph(self, index: int, graph: dict[str, Any]) -> Iterator[str]:
        held: set[int] = set()
        for entry in graph["inputs"]:
            yield from self._graph_input(index, graph, entry)
            if entry["value"] in held:
                yield f"graph {index}: value {entry['value']} is an input twice"
            held.add(entry["value"])
            self.produced.add(entry["value"])
            self.storages_seen.add(self.values[entry["value"]]["storage"])
        for position, op in enumerate(graph["ops"]):
            for fault in self._op(graph, op, held):
                yield f"graph {index} op {position}: {fault}"
        for entry in graph["outputs"]:
            if entry["value"] not in held:
                yield f"graph {index}: output value {entry['value']} is not there"

    def _graph_input(self, index: int, graph: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
        kind, value = entry["kind"], entry["value"]
        earlier = self.document["graphs"][:index]
        if kind in RESIDENT:
            if value not in [known["value"] for known in self.document[RESIDENT[kind]]]:
                yield f"graph {index}: value {value} is no {kind}"
        elif kind == "saved":
            if graph["direction"] != "backward" or value not in _outputs(earlier[graph["forward"]], "saved"):
                yield f"graph {index}: value {value} was not saved by its forward"
        elif kind == "tangent":
            if entry["of"] not in [output for each in earlier for output in _outputs(each, "loss", "output")]:
                yield f"graph {index}: tangent of {entry['of']}, which is no output"
            elif self.values[value]["shape"] != self.values[entry["of"]]["shape"]:
                yield f"graph {index}: tangent and its output differ in shape"
        elif kind != "activation" or value not in [v for each in earlier for v in _outputs(each, "output", "tangent")]:
            yield f"graph {index}: input of kind {kind} without an output that gives it"

    def _op(self, graph: dict[str, Any], op: dict[str, Any], held: set[int]) -> Iterator[str]:
        yield from self._reused(op)
        if "kernel" in op:
            yield from self._launch(op, held)
            return
        if not 0 <= op["schema"] < len(self.schemas) or not 0 <= op["module"] < len(self.document["modules"]):
            yield "schema or module out of range"
            return
        schema = self.schemas[op["schema"]]
        if op.get("recompute") and graph["direction"] != "backward":
            yield "recompute in a forward graph"
        if len(op["args"]) != len(schema.arguments):
            yield f"{len(op['args'])} arguments, expected {len(schema.arguments)} for {schema.name}"
        for argument, given in zip(schema.arguments, op["args"]):
            if not _fits(argument, given):
                yield f"argument {argument.name} of {schema.name} is {given}"
        read = values_of(op["args"])
        yield from self._reads(schema.name, read, held)
        yield from self._outputs_of(op, schema, read, held)

    def _reads(self, name: str, read: list[int], held: set[int]) -> Iterator[str]:
        for value in read:
            if value not in held:
                yield f"{name} uses value {value} before it is there"
            elif value in self.overwritten:
                yield f"{name} uses value {value}, which is overwritten"

    def _reused(self, op: dict[str, Any]) -> Iterator[str]:
        for value in op.get("reuses", []):
            if not self.compiled or value not in op["outputs"]:
                yield f"value {value} reuses memory and is no output of its op in a compiled form"
            elif self.values[value]["storage"] not in self.storages_seen:
                yield f"value {value} reuses memory that nobody had"

    def _launch(self, op: dict[str, Any], held: set[int]) -> Iterator[str]:
        kernels = self.document.get("kernels", [])
        if not 0 <= op["kernel"] < len(kernels) or not 0 <= op["module"] < len(self.document["modules"]):
            yield "kernel or module out of range"
            return
        kernel = kernels[op["kernel"]]
        name = kernel["name"]
        if len(op["args"]) != len(kernel["signature"]):
            yield f"{len(op['args'])} arguments, expected {len(kernel['signature'])} for {name}"
        for (argument, kind), given in zip(kernel["signature"], op["args"]):
            if isinstance(given, dict) != kind.startswith("*"):
                yield f"argument {argument} of {name} is {given}"
        yield from self._reads(name, [value for value, _ in op["reads"]], held)
        given = set(values_of(op["args"]))
        for value in op["outputs"]:
            if value not in given or value in self.produced:
                yield f"{name}: value {value} is produced twice, or no argument"
            self._produce(op, value, held)
        yield from self._reads(name, [value for value, _ in op["writes"]], held)
        if any(size < 0 for _, size in [*op["reads"], *op["writes"]]):
            yield f"{name} moves less than nothing"

    def _stand_in(self, kernel: dict[str, Any]) -> Iterator[str]:
        if "computes" in kernel and not kernel["computes"]:
            yield "computes nothing"
        held = {index for index, (_, kind) in enumerate(kernel["signature"]) if kind.startswith("*")}
        following = len(kernel["signature"])
        for op in kernel.get("computes", []):
            if not 0 <= op["schema"] < len(self.schemas):
                yield "schema out of range"
                return
            schema = self.schemas[op["schema"]]
            if len(op["args"]) != len(schema.arguments):
                yield f"{len(op['args'])} arguments, expected {len(schema.arguments)} for {schema.name}"
            for argument, given in zip(schema.arguments, op["args"]):
                if not _fits(argument, given):
                    yield f"argument {argument.name} of {schema.name} is {given}"
            for read in values_of(op["args"]):
                if read not in held:
                    yield f"{schema.name} reads {read}, which is not there"
            if len(op["outputs"]) != len(schema.returns):
                yield f"{schema.name}: {len(op['outputs'])} outputs, expected {len(schema.returns)}"
            for made in op["outputs"]:
                if made is not None and made != following:
                    yield f"{schema.name} makes {made}, expected {following}"
                held |= {made}
                following += made is not None

    def _produce(self, op: dict[str, Any], value: int, held: set[int]) -> None:
        storage = self.values[value]["storage"]
        if value in op.get("reuses", []):
            self.overwritten |= {each for each in self.produced if self.values[each]["storage"] == storage}
            self.overwritten -= set(op["outputs"])
        held.add(value)
        self.produced.add(value)
        self.storages_seen.add(storage)

    def _outputs_of(self, op: dict[str, Any], schema: Schema, read: list[int], held: set[int]) -> Iterator[str]:
        is_list = len(schema.returns) == 1 and schema.returns[0].is_list
        if op.get("list", False) != is_list:
            yield f"{schema.name}: list is wrong"
        if not is_list and len(op["outputs"]) != len(schema.returns):
            yield f"{schema.name}: {len(op['outputs'])} outputs, expected {len(schema.returns)}"
        read_storages = {self.values[value]["storage"] for value in read}
        for position, value in enumerate(op["outputs"]):
            if value is None:
                continue
            returned = schema.returns[0 if is_list else position]
            if returned.type != "Tensor":
                yield f"{schema.name}: output {position} is no tensor"
            if value in self.produced:
                yield f"{schema.name}: value {value} is produced twice"
            if value not in op.get("reuses", []):
                yield from self._storage_of(value, returned, schema, read_storages)
            self._produce(op, value, held)

    def _storage_of(self, value: int, returned: Argument, schema: Schema, read: set[int]) -> Iterator[str]:
        """A view's storage is that of something read; any other output starts a storage of its own."""
        storage = self.values[value]["storage"]
        if self.compiled and storage not in read:
            return  # a part of a buffer that other ops fill the rest of
        is_view = returned.aliases is not None or schema.name.partition(".")[0] in UNDECLARED_VIEWS
        if storage in self.storages_seen and (storage not in read or not is_view):
            yield f"{schema.name}: value {value} shares storage {storage}, which its schema does not allow"

    def _whole_step(self) -> Iterator[str]:
        graphs = self.document["graphs"]
        losses = [value for graph in graphs for value in _outputs(graph, "loss")]
        if len(losses) != 1 or self.values[losses[0]]["shape"] != []:
            yield "exactly one scalar loss expected"
        gradients = [output for graph in graphs for output in graph["outputs"] if output["kind"] == "gradient"]
        params = [output["param"] for output in gradients]
        if len(set(params)) != len(params):
            yield "two gradients of one parameter"
        for output in gradients:
            if not 0 <= output["param"] < len(self.document["params"]):
                yield "gradient of a parameter out of range"
                continue
            param = self.document["params"][output["param"]]
            if self.values[param["value"]]["shape"] != self.values[output["value"]]["shape"]:
                yield f"gradient of {param['name']} has another shape"
            if not param["requires_grad"]:
                yield f"gradient of {param['name']}, which is frozen"

    def _in_range(self, value: Any) -> bool:
        return isinstance(value, int) and 0 <= value < len(self.values)

    def _ids(self, graphs: list[dict[str, Any]]) -> Iterator[int]:
        for graph in graphs:
            yield from (entry["value"] for entry in [*graph["inputs"], *graph["outputs"]])
            for op in graph["ops"]:
                yield from values_of(op["args"])
                yield from (value for value, _ in [*op.get("reads", []), *op.get("writes", [])])
                yield from (value for value in op["outputs"] if value is not None)


def values_of(arguments: list[Any]) -> list[int]:
    """Value ids among an op's arguments."""
    single = [argument["v"] for argument in arguments if isinstance(argument, dict) and "v" in argument]
    lists = [argument["vs"] for argument in arguments if isinstance(argument, dict) and "vs" in argument]
    return single + [value for values in lists for value in values if value is not None]


def _outputs(graph: dict[str, Any], *kinds: str) -> list[int]:
    return [output["value"] for output in graph["outputs"] if output["kind"] in kinds]


def _fits(argument: Argument, given: Any) -> bool:
    """Whether a JSON value is one of the forms that docs/reference/formats.md gives for the argument's type."""
    if given is None:
        return argument.is_optional or argument.type == "Tensor"
    if argument.type == "Tensor":
        if argument.is_list:
            return isinstance(given, dict) and list(given) == ["vs"] and isinstance(given["vs"], list)
        return _is_number(given) or isinstance(given, dict) and list(given) == ["v"] and isinstance(given["v"], int)
    if argument.is_list:
        return isinstance(given, list) and all(_fits_one(argument.type, element) for element in given)
    return _fits_one(argument.type, given)


def _fits_one(kind: str, given: Any) -> bool:
    if isinstance(given, dict) and list(given) == ["f"]:
        return kind in ("float", "Scalar") and given["f"] in ("inf", "-inf", "nan")
    if kind in ("int", "SymInt"):
        return isinstance(given, int) and not isinstance(given, bool)
    if kind == "float":
        return isinstance(given, float)
    if kind == "Scalar":
        return isinstance(given, (int, float))
    if kind in ("bool", "str"):
        return isinstance(given, bool if kind == "bool" else str)
    named = {"ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format", "Device": "device"}
    if kind in named:
        right_devices = kind != "Device" or given.get("device") in ("local", "cpu")
        return isinstance(given, dict) and list(given) == [named[kind]] and right_devices
    return False


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool) or isinstance(given, dict) and list(given) == ["f"]
