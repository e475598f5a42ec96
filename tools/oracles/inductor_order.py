"""Compares what Inductor makes of graphs with DeepSpeed's operators in them with what dc-sim takes it to make.

    PYTHONPATH=tools/dcrecord/src:FOLDER python3 tools/oracles/inductor_order.py --out docs/lab/inductor_order.jsonl \\
        traces/gpt2 traces/bert-large

FOLDER holds an installed DeepSpeed 0.19.8 (DS_BUILD_OPS=0 pip install --no-deps --target FOLDER deepspeed==0.19.8) with
its requirements. Needs no GPU. Each workload is traced and split as its README.md records it. DeepSpeed's own passes then
put its operators in: zero3_compile's insertion and list scheduler, with prefetches at the start and after 30 and 60 % of the
nodes; for ZeRO-1 and 2 the reductions. Inductor lowers the graphs, with DeepSpeed's registration of its operators. A line
of the output is one graph, an object; each pair is how many there are, and of how many the statement holds:

    workload, stages, direction
    kernels     kernels and calls of the compiled form in traces, in its order
    waits, releases, reductions    in the order in which DeepSpeed put them
    at_use      gathers with nothing between them and their waits
    in_place    gathers in front of the kernel of the node that DeepSpeed put them in front of
    prefetches  for each the share of all kernels that come before it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

os.environ["DS_ACCELERATOR"] = "cpu"

import deepcompile_graphs as graphs  # noqa: E402
import deepspeed.compile.util as util  # noqa: E402
import torch  # noqa: E402

util.get_deepcompile_handle = lambda: None
from dcrecord.graph_file import COMPILED_FILES  # noqa: E402
from dcrecord.inductor import lowering, record  # noqa: E402
from dcrecord.inductor.joint_on_cuda import decompose_on_cuda  # noqa: E402
from dcrecord.inductor.lines import Call, Launch, Program  # noqa: E402
from dcrecord.inductor.no_gpu import gpu_to_compile_for  # noqa: E402
from dcrecord.options import Reporter  # noqa: E402
from dcrecord.record_command import make_documents  # noqa: E402
from dcrecord.record_options import read_request  # noqa: E402
from deepspeed.compile import inductor, list_schedule  # noqa: E402
from deepspeed.compile.passes import zero3_compile, zero_1_and_2_compile  # noqa: E402
from torch._functorch._aot_autograd.descriptors import ParamAOTInput  # noqa: E402
from torch.fx import GraphModule, Node  # noqa: E402

for schema in (
    "free_tensors(Tensor[] a) -> ()",
    "offload_tensor(Tensor a, int id, int id2) -> Tensor",
    "reload_tensor(Tensor a, int id, int id2) -> Tensor",
    "wait_offload(Tensor a, int id, int id2) -> Tensor",
    "wait_reload(Tensor a, int id, int id2) -> Tensor",
    "end_backward(Any deps, int graph_id, bool release_reduce_buckets) -> ()",
):
    graphs._LIBRARY.define(schema)

DC = torch.ops.dc
SHAPES: dict[int, tuple[tuple[int, ...], torch.dtype]] = {}  # of whole parameters
RANKS = 8
PREFETCHES = (0.0, 0.3, 0.6)


def _gathered(shard: torch.Tensor, graph_id: int, id: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    shape, own = SHAPES[id]
    return torch.empty(shape, dtype=dtype or own, device=shard.device)


graphs._LIBRARY.impl("allgather_param", _gathered, "Meta")
graphs._LIBRARY.impl("wait_allgather", lambda tensor, graph_id, id: tensor, "Meta")
graphs._LIBRARY.impl("release_param", lambda tensor, graph_id, id, n_users: tensor, "Meta")
graphs._LIBRARY.impl("reduce_grad", lambda tensor, graph_id, id: torch.empty([0], dtype=tensor.dtype, device=tensor.device), "Meta")
graphs._LIBRARY.impl("prefetch_params_fused", lambda graph_id, params, ids, dtypes=None: None, "CompositeExplicitAutograd")
graphs._LIBRARY.impl("end_backward", lambda deps, graph_id, release: None, "CompositeExplicitAutograd")


class Insertion:
    """DeepSpeed's operators in the graphs of one step.

    parameters   names of the placeholders of parameters, in the joint graph's order
    holders      all placeholders of the joint graph but the tangents, in whose order the backward returns gradients
    """

    def __init__(self, parameters: list[str], holders: list[str], mode: Any, gathers: bool) -> None:
        self.parameters, self.holders, self.mode, self.gathers = parameters, holders, mode, gathers
        self.manager = SimpleNamespace(params={}, ds_ids={}, param_names=[])

    def into(self, module: GraphModule, backward: bool) -> None:
        visible = _output_of(module).meta.get("user_visible_output_idxs")
        gradients = self._gradients(module) if backward else {}
        shards = self._declare(module) if self.gathers else []
        self.manager.param_names = [name for name in self.parameters if name in self.manager.params or name in gradients]
        if not self.gathers:
            self._reduce_alone(module, gradients)
        else:
            self._gather(module, shards, gradients, backward)
        _output_of(module).meta["user_visible_output_idxs"] = visible
        module.graph.lint()
        module.recompile()

    def _gradients(self, module: GraphModule) -> dict[str, Node]:
        returned = zip(self.holders, _output_of(module).args[0])
        return {name: node for name, node in returned if name in self.parameters and node is not None}

    def _declare(self, module: GraphModule) -> list[Node]:
        """Tells DeepSpeed of the graph's parameters, which it passes as tensors without elements."""
        shards = []
        for node in module.graph.nodes:
            if node.op != "placeholder" or node.name not in self.parameters:
                continue
            whole, id = node.meta["val"], self.parameters.index(node.name)
            SHAPES[id] = (tuple(whole.shape), whole.dtype)
            self.manager.params[node.name] = SimpleNamespace(
                name=node.name,
                dtype=whole.dtype,
                numel=whole.numel(),
                bytes=whole.numel() * whole.dtype.itemsize,
                param=SimpleNamespace(ds_persist=False, ds_shape=tuple(whole.shape)),
            )
            self.manager.ds_ids[node.name] = id
            with self.mode:
                node.meta["val"] = torch.empty([0], dtype=whole.dtype, device=whole.device)
            shards.append(node)
        return shards

    def _reduce_alone(self, module: GraphModule, gradients: dict[str, Node]) -> None:
        if gradients:
            self.manager.param_names = list(gradients)
            self.manager.ds_ids = {name: self.parameters.index(name) for name in gradients}
            self.manager.get_bwd_mapping = lambda graph: ([], gradients)
            zero_1_and_2_compile.add_z1_reduce_bw(module, 0, [(0, True)], {0: self.manager})

    def _gather(self, module: GraphModule, shards: list[Node], gradients: dict[str, Node], backward: bool) -> None:
        if backward:
            named = {name: gradients.get(name) for name in self.manager.param_names}
            graph = zero3_compile.add_gather_and_reduce(0, module.graph, self.manager, shards, named)
        else:
            graph = zero3_compile.add_gather_and_release(0, module.graph, self.manager, shards)
        for node in graph.nodes:
            node.meta.setdefault("device_time", 0)
            node.meta["tensor_size"] = 0
            if node.target is DC.allgather_param.default:
                param = self.manager.params[node.args[0].name]
                node.meta["tensor_size"] = param.bytes
                node.meta["allgather_allocation_bytes"] = -(-param.numel // RANKS) * RANKS * param.dtype.itemsize
        module.graph = list_schedule.fast_free_schedule(graph, 0, 0, False)
        self._prefetch(module)
        if backward:
            zero3_compile.add_end_backward(module.graph, 0, True)
            zero3_compile.replace_reduce_outputs_with_none(module.graph)

    def _prefetch(self, module: GraphModule) -> None:
        """Fused prefetches, each of the next gathers that DeepSpeed has put behind it."""
        nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        for share in PREFETCHES:
            at = nodes[int(share * len(nodes))]
            behind = [node for node in nodes[int(share * len(nodes)) :] if node.target is DC.allgather_param.default][:4]
            if behind:
                with module.graph.inserting_before(at):
                    arguments = (0, [node.args[0] for node in behind], [node.args[2] for node in behind])
                    module.graph.call_function(DC.prefetch_params_fused.default, arguments)


def _output_of(module: GraphModule) -> Node:
    return next(node for node in reversed(module.graph.nodes) if node.op == "output")


def kind_of(operator: Any) -> str | None:
    """Name of an operator of DeepSpeed's; None for any other."""
    return str(operator).removeprefix("dc.").removesuffix(".default") if str(operator).startswith("dc.") else None


def in_order(found: list[Any], given: list[Any]) -> list[int]:
    """How many there are, and the most of them that come in the given order."""
    place = {each: index for index, each in enumerate(given)}
    best: list[int] = []  # by length: the least last place of an ascending part
    for index in (place[each] for each in found if each in place):
        longer = next((length for length, last in enumerate(best) if last >= index), len(best))
        best[longer : longer + 1] = [index]
    return [len(given), len(best)]


def common(found: list[str], given: list[str]) -> list[int]:
    """How many are given, and the longest part of them that is found in this order."""
    row = [0] * (len(found) + 1)
    for each in given:
        before = row
        row = [0]
        for index, other in enumerate(found):
            row.append(before[index] + 1 if each == other else max(before[index + 1], row[-1]))
    return [len(given), row[-1]]


def events_of(nodes: Iterable[Node]) -> dict[str, list[int]]:
    """Ids of parameters by name of DeepSpeed's operator, in order."""
    found: dict[str, list[int]] = {}
    for node in nodes:
        if kind := kind_of(node.target):
            found.setdefault(kind, []).append(node.args[2] if len(node.args) > 2 else 0)
    return found


def numbered(ids: list[int]) -> list[tuple[int, int]]:
    """Ids with how often each came before: a parameter has a release for each use."""
    counts: dict[int, int] = {}
    result = []
    for id in ids:
        counts[id] = counts.get(id, 0) + 1
        result.append((id, counts[id]))
    return result


class Comparison:
    """Inductor's program beside the graph that it was made of."""

    def __init__(self, module: GraphModule, program: Program) -> None:
        self.nodes = [node for node in module.graph.nodes if node.op == "call_function"]
        self.given = events_of(self.nodes)
        self.sources = program.sources
        self.steps = [step for step in program.steps if isinstance(step, (Call, Launch))]
        self.before: list[int] = []  # of each step: kernels in front of it
        kernels = 0
        for step in self.steps:
            self.before.append(kernels)
            kernels += not self._event(step)
        self.kernel_count = kernels

    @staticmethod
    def _event(step: Call | Launch) -> str | None:
        return kind_of(step.operator) if isinstance(step, Call) else None

    def _ids(self, kind: str) -> list[int]:
        return [step.args[2] if len(step.args) > 2 else 0 for step in self.steps if self._event(step) == kind]

    def kernels(self) -> list[str]:
        names = []
        for step in self.steps:
            if isinstance(step, Launch):
                names.append(hashlib.sha256(self.sources[step.kernel].encode()).hexdigest()[:16])
            elif not self._event(step) and "as_strided" not in str(step.operator):
                names.append(str(step.operator._schema).split("(")[0])
        return names

    def order_of(self, kind: str) -> list[int]:
        return in_order(numbered(self._ids(kind)), numbered(self.given.get(kind, [])))

    def at_use(self) -> list[int]:
        gathers = [index for index, step in enumerate(self.steps) if self._event(step) == "allgather_param"]
        waits = {step.args[2]: index for index, step in enumerate(self.steps) if self._event(step) == "wait_allgather"}
        held = [i for i in gathers if self.before[waits[self.steps[i].args[2]]] == self.before[i]]
        return [len(gathers), len(held)]

    def in_place(self) -> list[int]:
        step_of: dict[str, int] = {}
        for index, step in enumerate(self.steps):
            for origin in step.origins if not self._event(step) else []:
                step_of.setdefault(origin.name, index)
        place: dict[int, int] = {}
        following = self.kernel_count
        for node in reversed(self.nodes):
            if node.name in step_of:
                following = self.before[step_of[node.name]]
            elif kind_of(node.target) == "allgather_param":
                place[node.args[2]] = following
        held = [
            step
            for index, step in enumerate(self.steps)
            if self._event(step) == "allgather_param" and self.before[index] == place[step.args[2]]
        ]
        return [len(place), len(held)]

    def prefetches(self) -> list[float]:
        found = [index for index, step in enumerate(self.steps) if self._event(step) == "prefetch_params_fused"]
        return [round(self.before[index] / self.kernel_count, 3) for index in found]


def recorded_kernels(folder: Path, target: str, direction: str) -> list[str]:
    with lzma.open(folder / COMPILED_FILES[target]) as file:
        document = json.load(file)
    graph = next(each for each in document["graphs"] if each["direction"] == direction)
    names = []
    for op in graph["ops"]:
        if "kernel" in op:
            names.append(document["kernels"][op["kernel"]]["hash"])
        elif not document["schemas"][op["schema"]].startswith("aten::as_strided("):
            names.append(document["schemas"][op["schema"]].split("(")[0])
    return names


def line_of(folder: Path, target: Any, backward: bool, module: GraphModule, program: Program) -> dict[str, Any]:
    direction = "backward" if backward else "forward"
    found = Comparison(module, program)
    line = {
        "workload": folder.name,
        "stages": list(target.stages),
        "direction": direction,
        "kernels": common(found.kernels(), recorded_kernels(folder, target.name, direction)),
    }
    if target.gathers:
        line |= {
            "waits": found.order_of("wait_allgather"),
            "releases": found.order_of("release_param"),
            "at_use": found.at_use(),
            "in_place": found.in_place(),
            "prefetches": found.prefetches(),
        }
    if backward:
        line["reductions"] = found.order_of("reduce_grad")
    return line


def lines_of(folder: Path, captured: Any) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    parameters = [name for name, kind in captured.input_kinds.items() if isinstance(kind, ParamAOTInput)]
    with gpu_to_compile_for(), record._quiet():
        for target in lowering.TARGETS:
            joint = decompose_on_cuda(captured.joint)
            placed = [node.name for node in joint.graph.graph.nodes if node.op == "placeholder"]
            holders = [name for name in placed if not name.startswith("tangents")]
            insertion = Insertion(parameters, holders, joint.mode, target.gathers)
            plain = lowering._lower

            def lower(module: GraphModule, backward: bool, overwritten: list[int]) -> Program:
                insertion.into(module, backward)
                program = plain(module, backward, overwritten)
                lines.append(line_of(folder, target, backward, module, program))
                return program

            with (
                mock.patch.object(lowering, "_lower", lower),
                mock.patch.object(lowering, "insert_releases", lambda graph, names: None),
                mock.patch.object(lowering, "register_release", inductor.register_custom_ops),
            ):
                inductor.register_custom_ops()
                lowering.lower_step(joint, set(parameters), len(captured.output_names), target)
    return lines


def command_of(folder: Path) -> list[str]:
    lines = (folder / "README.md").read_text().splitlines()
    return shlex.split(next(line for line in lines if line.startswith("python -m dcrecord ")))[3:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="lines of other workloads in it stay")
    parser.add_argument("folders", nargs="+", type=Path, metavar="WORKLOAD")
    options = parser.parse_args()
    sys.setrecursionlimit(100_000)
    for folder in options.folders:
        found: list[dict[str, Any]] = []

        def compare(captured: Any, contents: Any, report: Reporter) -> dict[str, Any]:
            found.extend(lines_of(folder, captured))
            return {}

        with mock.patch.object(record, "compiled_documents", compare):
            request = read_request([*command_of(folder), "--backend", "inductor"])
            make_documents(request, Reporter(lambda line: print(line, file=sys.stderr, flush=True)))
        old = options.out.read_text().splitlines() if options.out.exists() else []
        lines = [json.loads(line) for line in old]
        lines = sorted([line for line in lines if line["workload"] != folder.name] + found, key=lambda each: each["workload"])
        options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
