"""Joint graph -> forward and backward -> what Inductor runs, for each ZeRO stage that has kernels of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.fx import GraphModule, Node

from dcrecord.cuda_operators import results_on_cuda
from dcrecord.errors import RecorderError
from dcrecord.inductor.joint_on_cuda import CudaJoint
from dcrecord.inductor.lines import Captured, Program, capturing
from dcrecord.inductor.padding import padding_by_rule
from dcrecord.inductor.regions import keep_between_regions, part_regions, running_the_rest
from dcrecord.inductor.releases import insert_releases, register_release
from dcrecord.partition import mark_parameter_aliases

_PREFIX = "TORCHINDUCTOR_"
_HARMLESS = (_PREFIX + "CACHE_DIR",)
# Nothing is kept, nothing is measured on a device, and no process but this one compiles.
_PINNED: dict[str, Any] = {
    "size_asserts": False,
    "alignment_asserts": False,
    "compile_threads": 1,
    "fx_graph_cache": False,
    "force_disable_caches": True,
}
# deepspeed/compile/inductor.py, _DEEP_COMPILE_Z3_INDUCTOR_REDUCTION_CONFIG, of release 0.19.8.
_ZERO3 = {"triton.mix_order_reduction": False, "triton.persistent_reductions": False}


@dataclass(frozen=True)
class Target:
    """Stages of ZeRO whose graphs are lowered alike. `apart`: each layer on its own, as users of FSDP2 compile."""

    name: str
    stages: tuple[int, ...]
    gathers: bool
    apart: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Inductor's settings that differ from its own defaults."""
        return {**_PINNED, **(_ZERO3 if self.gathers else {})}


TARGETS = (
    Target("zero3", (3,), gathers=True),
    Target("zero12", (1, 2), gathers=False),
    Target("layers", (), gathers=False, apart=True),
)


@dataclass
class Lowered:
    """forward_outputs, backward_outputs: names of what the graphs return, before Inductor; None for no gradient."""

    forward: Program
    backward: Program
    forward_outputs: list[str]
    backward_outputs: list[str | None]
    backward_inputs: list[str]


def check_environment() -> None:
    """Throws RecorderError where a variable changes what Inductor makes."""
    found = sorted(name for name in os.environ if name.startswith(_PREFIX) and name not in _HARMLESS)
    if found:
        raise RecorderError(f"--backend inductor with {found[0]} set: it changes what Inductor makes, expected it unset")


def lower_step(
    joint: CudaJoint, parameters: set[str], outputs: int, target: Target, stand_ins: bool = False
) -> Lowered:
    """Splits and lowers a step.

    parameters   names of the placeholders of parameters
    outputs      how many of the joint graph's first outputs are the forward's
    stand_ins    whether launches tell what their kernels compute
    """
    with _settings(target):
        forward, backward = _partition(joint, parameters, outputs, target)
        return _lower_halves(forward, backward, parameters, outputs, target, stand_ins)


def lower_halves(
    forward: GraphModule, backward: GraphModule, parameters: set[str], outputs: int, target: Target
) -> Lowered:
    """The same for a step that Inductor has split already; the graphs change."""
    with _settings(target):
        return _lower_halves(forward, backward, parameters, outputs, target)


def _lower_halves(
    forward: GraphModule,
    backward: GraphModule,
    parameters: set[str],
    outputs: int,
    target: Target,
    stand_ins: bool = False,
) -> Lowered:
    returned = [_name(node) for node in _returned(forward)]
    gradients = [_name(node) for node in _returned(backward)]
    needed = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    overwritten = _overwritten(forward, backward, outputs)
    if target.apart:
        part_regions(forward)
        part_regions(backward)
    if target.gathers:
        register_release()
        insert_releases(forward, parameters)
        insert_releases(backward, parameters)
    _node_of_output(forward).meta["user_visible_output_idxs"] = list(range(outputs))
    _node_of_output(backward).meta["user_visible_output_idxs"] = []
    with running_the_rest() if target.apart else nullcontext(), capturing(stand_ins):
        ahead = _lower(forward, False, [])
        _lay_out_as_saved(backward, dict(zip(returned[outputs:], ahead.strides[outputs:])))
        behind = _lower(backward, True, overwritten)
    return Lowered(ahead, behind, returned, gradients, needed)


def _lay_out_as_saved(backward: GraphModule, strides: dict[str | None, tuple[int, ...] | None]) -> None:
    """Inductor lays out what the forward saves as it likes, and the backward takes it as it lies
    (torch/_functorch/_aot_autograd/graph_compile.py, _aot_stage2b_bw_compile)."""
    for node in backward.graph.nodes:
        found = strides.get(node.name) if node.op == "placeholder" else None
        tensor = node.meta.get("val")
        if found is not None and tuple(tensor.stride()) != found:
            with tensor.fake_mode:
                node.meta["val"] = tensor.as_strided(tensor.shape, found)


@contextmanager
def _settings(target: Target) -> Iterator[None]:
    from torch._inductor import config
    from torch._inductor.scheduler import Scheduler

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"TORCHINDUCTOR_CACHE_DIR": folder}),
        config.patch(target.settings),
        padding_by_rule(),
        results_on_cuda(),  # Inductor asks fake tensors how a convolution's result lies
        # DeepCompile's operators have results that nobody reads.
        mock.patch.object(Scheduler, "dead_node_elimination", lambda _: None),
    ):
        yield


def _partition(
    joint: CudaJoint, parameters: set[str], outputs: int, target: Target
) -> tuple[GraphModule, GraphModule]:
    """Inductor's passes over the joint graph and its split; DeepCompile marks aliases of gathered parameters first."""
    from torch._inductor.compile_fx import partition_fn
    from torch._inductor.virtualized import V

    if target.apart:
        keep_between_regions(joint.graph)
    if target.gathers:
        mark_parameter_aliases(joint.graph.graph, lambda node: node.name in parameters)
    holders = [node.name for node in joint.graph.graph.nodes if node.op == "placeholder"]
    static = [index for index, name in enumerate(holders) if name in parameters]
    context = torch._guards.TracingContext(joint.mode)
    with V.set_fake_mode(joint.mode), torch._guards.tracing(context), joint.mode:
        return partition_fn(
            joint.graph, tuple(joint.inputs), num_fwd_outputs=outputs, static_lifetime_input_indices=static
        )


def _overwritten(forward: GraphModule, backward: GraphModule, outputs: int) -> list[int]:
    """Inputs of the backward that Inductor may overwrite: saved tensors in memory of their own
    (torch/_functorch/_aot_autograd/graph_compile.py, collect_bw_donated_buffer_idxs)."""
    returned = _returned(forward)
    holders = [node for node in forward.graph.nodes if node.op == "placeholder"]
    kept = [*holders, *returned[:outputs], *(node for node in _returned(backward) if node is not None)]
    taken = {_memory(node) for node in kept if "val" in node.meta}
    saved = {node.name: node for node in returned[outputs:]}
    needed = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    return [index for index, name in enumerate(needed) if name in saved and _memory(saved[name]) not in taken]


def _memory(node: Node) -> int:
    return node.meta["val"].untyped_storage()._cdata


def _lower(graph: GraphModule, backward: bool, overwritten: list[int]) -> Program:
    from torch._inductor.compile_fx import compile_fx_inner

    holders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    inputs = [node.meta["val"] for node in holders]
    static = [index for index, node in enumerate(holders) if not node.name.startswith("tangents")]
    context = torch._guards.TracingContext(next(each.fake_mode for each in inputs if hasattr(each, "fake_mode")))
    if overwritten:
        context.fw_metadata = SimpleNamespace(bw_donated_idxs=overwritten, num_mutated_inp_runtime_indices=0)
    with torch._guards.tracing(context):
        try:
            compile_fx_inner(graph, inputs, is_backward=backward, static_input_idxs=static)
        except Exception as error:
            return _captured(error)
    raise RecorderError("Inductor ended before it wrote a program")


def _captured(error: BaseException) -> Program:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, (Captured, RecorderError)):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, Captured):
        return cause.program
    raise cause or error


def _node_of_output(graph: GraphModule) -> Node:
    return next(node for node in reversed(graph.graph.nodes) if node.op == "output")


def _returned(graph: GraphModule) -> list[Node | None]:
    return list(_node_of_output(graph).args[0])


def _name(node: Node | None) -> str | None:
    return None if node is None else node.name
