"""DeepCompile's releases as markers that Inductor does not see through.

DeepCompile inserts gathers and releases before Inductor lowers the graph. Of them only releases change kernels: one stands
behind every consumer of a parameter, and what follows reads the release's result (deepspeed/compile/passes/zero3_compile.py),
so that no kernel reaches across it. They are dropped again from the recording.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from dcrecord.partition import returns_alias

_LIBRARY = torch.library.Library("dcrecord", "DEF")
_LIBRARY.define("release(Tensor(a) self) -> Tensor(a)")
_LIBRARY.impl("release", lambda tensor: tensor, "Meta")
RELEASE = torch.ops.dcrecord.release.default


@functools.cache
def register_release() -> None:
    """Inductor calls the marker as it is (deepspeed/compile/inductor.py, register_custom_ops)."""
    from torch._inductor.ir import FallbackKernel, IRNode, TensorBox
    from torch._inductor.lowering import add_needs_realized_inputs, fallbacks, register_lowering
    from torch.utils import _pytree as pytree

    fallbacks.add(RELEASE)
    add_needs_realized_inputs(RELEASE)

    @register_lowering(RELEASE, type_promotion_kind=None)
    def lower_release(*args: Any, **kwargs: Any) -> Any:
        made = FallbackKernel.create(RELEASE, *args, **kwargs)
        return pytree.tree_map(lambda each: TensorBox.create(each) if isinstance(each, IRNode) else each, made)


def insert_releases(graph: GraphModule, parameters: set[str]) -> None:
    """Puts a marker behind every consumer of a placeholder in `parameters`."""
    uses = _consumers(graph)
    consumers = {use for node in list(uses) if node.op == "placeholder" and node.name in parameters for use in uses[node]}
    for node in list(graph.graph.nodes):
        if node in consumers:
            for tensor in _tensors_of(node):
                _insert_behind(graph, tensor)
    graph.graph.lint()
    graph.recompile()


def _consumers(graph: GraphModule) -> dict[Node, list[Node]]:
    """By node: the nodes that read it, through views of it (deepspeed/compile/util.py, get_real_uses)."""
    uses: dict[Node, list[Node]] = defaultdict(list)
    for node in reversed(graph.graph.nodes):
        if node.op == "output":
            continue
        through = uses[node] if returns_alias(node.target) else [node]
        map_arg((node.args, node.kwargs), lambda read, through=through: uses[read].extend(through))
    return uses


def _tensors_of(node: Node) -> list[Node]:
    selected = [user for user in node.users if user.target is operator.getitem]
    return selected or [node]


def _insert_behind(graph: GraphModule, node: Node) -> None:
    with graph.graph.inserting_after(node):
        marker = graph.graph.call_function(RELEASE, (node,))
    node.replace_all_uses_with(marker, delete_user_cb=lambda user: user is not marker)
    marker.meta["val"] = node.meta["val"]
