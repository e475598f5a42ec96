"""The joint graph once more, on fake CUDA tensors and with Inductor's decompositions.

Autograd is done by then, so no stream is asked of a driver. Decomposing on CPU tensors instead would meet rules for CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._functorch._aot_autograd.descriptors import BufferAOTInput
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Interpreter, Node
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import decompose, make_fx
from torch.utils._pytree import tree_leaves

from dcrecord.cuda_operators import results_on_cuda
from dcrecord.replay import DEVICE


@dataclass
class CudaJoint:
    """The decomposed joint graph.

    inputs      fake CUDA tensors for its placeholders
    constants   by name of a placeholder at its end: the constant of the code that it stands for
    """

    graph: GraphModule
    inputs: list[Tensor]
    mode: FakeTensorMode
    constants: dict[str, Tensor]


class _OnCuda(Interpreter):
    """Runs a graph recorded on the CPU; constants of the code are `constants`, and nodes that `keeps` tells stay whole."""

    constants: dict[str, Tensor]
    keeps: Callable[[Node], bool] | None

    def run_node(self, node: Node) -> Any:
        with decompose({}) if self.keeps and self.keeps(node) else nullcontext():
            return super().run_node(node)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return super().call_function(target, args, {**kwargs, "device": DEVICE} if "device" in kwargs else kwargs)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self.constants[target]


def decompose_on_cuda(joint: GraphModule, keeps: Callable[[Node], bool] | None = None) -> CudaJoint:
    """Placeholders keep their names and descriptors; constants become placeholders behind them.

    keeps   tells the nodes that are not decomposed
    """
    from torch._inductor.decomposition import select_decomp_table

    holders = [node for node in joint.graph.nodes if node.op == "placeholder"]
    attributes = list(dict.fromkeys(str(node.target) for node in joint.graph.nodes if node.op == "get_attr"))
    constants = {name: getattr(joint, name) for name in attributes}
    mode = FakeTensorMode(allow_non_fake_inputs=False)
    with mode:
        inputs = [_fake(tensor) for tensor in [*(node.meta["val"] for node in holders), *constants.values()]]
    interpreter = _OnCuda(joint)
    interpreter.keeps = keeps

    def run(*given: Tensor) -> Any:
        interpreter.constants = dict(zip(attributes, given[len(holders) :]))
        return interpreter.run(*given[: len(holders)])

    with mode, fx_traceback.preserve_node_meta(), results_on_cuda(), torch.no_grad():
        trace = make_fx(run, decomposition_table=select_decomp_table(), tracing_mode="fake", _allow_non_fake_inputs=True)
        decomposed = trace(*inputs)
    made = [node for node in decomposed.graph.nodes if node.op == "placeholder"]
    names = [node.name for node in holders] + [f"constant_{index}" for index in range(len(constants))]
    for node in made:
        node._rename(f"taken_{node.name}")
    for node, name in zip(made, names):
        node._rename(name)
        node.target = node.name
    decomposed.recompile()
    return CudaJoint(decomposed, inputs, mode, dict(zip(names[len(holders) :], constants.values())))


def copy_updates(joint: CudaJoint, exported: GraphModule, updates: int) -> None:
    """The first `updates` outputs, new values of buffers, become copies into these behind all else, as torch.compile has
    them. `exported` is the graph that was decomposed, whose output says which buffers."""
    graph = joint.graph.graph
    buffers = {
        node.meta["desc"]: node.name
        for node in exported.graph.nodes
        if node.op == "placeholder" and isinstance(node.meta["desc"], BufferAOTInput)
    }
    holders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    returned = graph.output_node()
    outputs = tree_leaves(returned.args[0])
    for node, kind in zip(outputs[:updates], exported.graph.output_node().meta["desc"]):
        holder = holders[buffers[kind.mutated_input]]
        with graph.inserting_before(returned):
            copied = graph.call_function(torch.ops.aten.copy_.default, (holder, node))
        copied.meta = {**node.meta, "val": holder.meta["val"]}
    returned.args = (tuple(outputs[updates:]),)
    joint.graph.recompile()


def tell_modules(joint: GraphModule) -> None:
    """A node that differentiates another one gets that one's modules: their common number is lost on the way."""
    stacks: dict[int, Any] = {}
    for node in joint.graph.nodes:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        number = node.meta.get("seq_nr")
        if stack and number is not None:
            stacks.setdefault(number, stack)
        if stack or number in stacks:
            node.meta["nn_module_stack"] = stack or stacks[number]


def _fake(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=DEVICE)
