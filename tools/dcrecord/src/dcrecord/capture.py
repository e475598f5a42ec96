"""Tracing a training step into one forward and one backward graph of ATen operators.

The way: Dynamo captures the module's Python into one graph, AOTAutograd differentiates it into a joint
graph with an empty decomposition table (so kernels that PyTorch has stay one op), and a partitioner
splits it. The tensors may be fake, which is how a model is recorded without memory for its weights.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.functional_export import dynamo_graph_capture_for_export
from torch._functorch._aot_autograd.descriptors import (
    GradAOTOutput,
    InputMutationAOTOutput,
    ParamAOTInput,
    PlainAOTInput,
)
from torch._functorch.aot_autograd import aot_compile_joint_with_descriptors, aot_export_joint_with_descriptors
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from dcrecord.errors import RecorderError
from dcrecord.partition import partitioner
from dcrecord.running_statistics import is_update, update_in_place
from dcrecord.workload import TrainingStep

# Everything that could change the graph from outside (environment variables, settings of the process).
_DYNAMO_SETTINGS = {
    "allow_rnn": True,  # recurrence is refused by name (cuda_operators.py), not as a graph break
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": False,
    "capture_scalar_outputs": False,
    "capture_dynamic_output_shape_ops": False,
    "suppress_errors": False,
}
_AOT_SETTINGS = {
    "activation_memory_budget": 1.0,
    "aggressive_recomputation": False,
    "ban_recompute_long_fusible_chains": True,
    "ban_recompute_materialized_backward": True,
    "ban_recompute_not_in_allowlist": True,
    "ban_recompute_reductions": True,
    "ban_recompute_used_far_apart": True,
    "functionalize_rng_ops": False,
    "max_dist_from_bw": 1000,
    "recompute_views": False,
    "treat_parameters_as_free_to_save": True,
}


@dataclass
class Captured:
    """The two graphs of a step and what their inputs and outputs are.

    input_kinds     by name of a placeholder: AOTAutograd's descriptor of it
    output_names    names of the forward's first outputs, the loss first; what follows is saved
    gradients_of    by position in the backward's outputs: name of the parameter, or None
    joint           both in one graph, as they were before the split, where it was asked for
    updates         how many of the joint graph's outputs, its first, update buffers
    """

    forward: GraphModule
    backward: GraphModule
    input_kinds: dict[str, Any]
    output_names: list[str]
    gradients_of: list[str | None]
    joint: GraphModule | None
    updates: int


def capture(step: TrainingStep, inputs: Sequence[Tensor], partitioner_name: str, keep_joint: bool = False) -> Captured:
    """Traces `step` on `inputs`. Throws what PyTorch throws; refuse.py knows how to explain it."""
    torch._dynamo.reset()
    with unset_fake_temporarily():
        # Dynamo fills this table at its first use, which fails under a FakeTensorMode.
        torch._dynamo.variables.builtin.populate_builtin_to_tensor_fn_map()
    with _settings(), ExitStack() as stack:
        traced = dynamo_graph_capture_for_export(step)(*inputs)
        joint = aot_export_joint_with_descriptors(stack, traced, tuple(inputs), decompositions={})
        whole = _copy(joint.graph_module) if keep_joint else None
        return replace(_split(joint, partitioner_name, step.names), joint=whole)


def _copy(module: GraphModule) -> GraphModule:
    """Another graph over the same tensors: constants of the code cannot be copied among fake tensors."""
    return GraphModule(module, copy.deepcopy(module.graph))


@contextmanager
def _settings() -> Iterator[None]:
    """Pins the settings that shape the graph, and silences what users cannot act on."""
    with (
        torch._dynamo.config.patch(**_DYNAMO_SETTINGS, ignore_logging_functions=_logging_methods()),
        torch._functorch.config.patch(**_AOT_SETTINGS),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message="While compiling, we found certain side effects")
        warnings.filterwarnings("ignore", category=FutureWarning)
        yield


def _logging_methods() -> set[Any]:
    """What a module says while it runs is no part of its graph. Libraries add methods to the class (warning_once)."""
    return {method for name, method in vars(logging.Logger).items() if callable(method) and not name.startswith("_")}


def _split(joint: Any, partitioner_name: str, input_names: Sequence[str]) -> Captured:
    """Runs the partitioner and keeps the graphs that AOTAutograd would hand to a compiler."""
    nodes = list(joint.graph_module.graph.nodes)
    input_kinds = {node.name: node.meta["desc"] for node in nodes if node.op == "placeholder"}
    output_kinds = nodes[-1].meta["desc"]
    output_names = list(joint.out_spec._context if joint.out_spec.type is dict else [])
    updates = _count_updates(nodes[-1], input_names)
    halves: dict[str, GraphModule] = {}

    def keep(name: str) -> Any:
        def compiler(graph: GraphModule, _: Any) -> GraphModule:
            halves[name] = graph
            return graph

        return compiler

    aot_compile_joint_with_descriptors(
        joint,
        partition_fn=partitioner(partitioner_name, lambda node: isinstance(input_kinds.get(node.name), ParamAOTInput)),
        fw_compiler=keep("forward"),
        bw_compiler=keep("backward"),
    )
    if "backward" not in halves:
        raise RecorderError("the loss depends on no parameter that requires a gradient: expected something to train")
    update_in_place(halves["forward"].graph, updates)
    gradients = output_kinds[updates + len(output_names) :]
    parameters = list(map(_parameter_of, gradients))
    return Captured(halves["forward"], halves["backward"], input_kinds, output_names, parameters, None, updates)


def _count_updates(returned: Node, input_names: Sequence[str]) -> int:
    """How many of the joint graph's outputs, its first, update buffers. Beside them are the step's outputs and gradients,
    and nothing else that changes an input."""
    kinds = [(node, kind) for node, kind in zip(returned.args[0], returned.meta["desc"])]
    changes = [(node, kind.mutated_input) for node, kind in kinds if isinstance(kind, InputMutationAOTOutput)]
    refused = [kind for node, kind in changes if not is_update(node, kind)]
    if refused:
        names = sorted(
            f"input {input_names[kind.idx]}" if isinstance(kind, PlainAOTInput) else kind.target.removeprefix("body.")
            for kind in refused
        )
        raise RecorderError(
            f"the forward changes its inputs or buffers in place ({', '.join(names)}): expected a module that leaves them "
            "alone but for the running statistics of batch norms and counters that it does not read, for example no cache"
        )
    return len(changes)


def _parameter_of(kind: Any) -> str | None:
    if isinstance(kind, GradAOTOutput) and isinstance(kind.grad_of, ParamAOTInput):
        return kind.grad_of.target
    return None
