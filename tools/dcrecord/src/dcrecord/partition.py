"""Splitting the joint graph into forward and backward as DeepCompile does for ZeRO-3.

ZeRO-3 gathers a parameter before it is used and frees it afterwards. A partitioner that knows nothing of
that saves views and casts of parameters for the backward, which would keep the gathered parameter alive.
So every alias of a parameter (a view, a transpose) and every cast of one is marked to be recomputed in
the backward, where the parameter is gathered again; everything else is left to the minimum cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._functorch import partitioners
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch.fx import Graph, GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

# Marks what a joint node was before the split, so that a repeated op is known in the backward graph.
JOINT_NODE = "dcrecord_joint_node"

# DeepSpeed gives nodes outside of any checkpointed block the number of the first block, because the
# partitioner wants a block number on every node with a recompute mark.
_FIRST_BLOCK = 1

Partition = Callable[..., tuple[GraphModule, GraphModule]]


def partitioner(name: str, is_parameter: Callable[[Node], bool]) -> Partition:
    """The partition function called `name`: `mincut` (DeepCompile's) or `default` (what eager PyTorch saves).

    is_parameter   tells the placeholders of parameters in the joint graph
    """

    def partition(joint: GraphModule, inputs: Any, **kwargs: Any) -> tuple[GraphModule, GraphModule]:
        for index, node in enumerate(joint.graph.nodes):
            node.meta[JOINT_NODE] = index
        with _plain_recomputation():
            if name == "default":
                return default_partition(joint, inputs, **kwargs)
            mark_parameter_aliases(joint.graph, is_parameter)
            return min_cut_rematerialization_partition(joint, inputs, **kwargs)

    return partition


@contextmanager
def _plain_recomputation() -> Iterator[None]:
    """Inside, a recomputed attention op is that op again.

    PyTorch wraps every recomputed op that may draw random numbers in Python-only operators that restore the
    generator. Attention without dropout draws none, and recordings with dropout are refused, so the wrappers
    would change nothing but where the graph can run.
    """
    wrap = partitioners.functionalize_rng_ops
    partitioners.functionalize_rng_ops = lambda _joint, forward, backward, _symbols: (forward, backward)
    try:
        yield
    finally:
        partitioners.functionalize_rng_ops = wrap


def mark_parameter_aliases(joint: Graph, is_parameter: Callable[[Node], bool]) -> None:
    """Marks aliases and casts of parameters, and those of such aliases and casts, to be recomputed."""
    aliases = {node for node in joint.nodes if node.op == "placeholder" and is_parameter(node)}
    for node in joint.nodes:
        node.meta.setdefault("ac_graph_id", _FIRST_BLOCK)
        if node.op != "call_function" or not (returns_alias(node.target) or _is_cast(node)):
            continue
        if any(isinstance(argument, Node) and argument in aliases for argument in node.args):
            node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE
            aliases.add(node)


def returns_alias(operator: Any) -> bool:
    """Whether the schema says that a returned tensor shares memory with an argument."""
    schema = getattr(operator, "_schema", None)
    return schema is not None and any(returned.alias_info is not None for returned in schema.returns)


def _is_cast(node: Node) -> bool:
    return node.target is torch.ops.aten._to_copy.default and set(node.kwargs) == {"dtype"}
