"""Which of the nodes that Inductor's scheduler has fused a kernel computes."""

from __future__ import annotations

from typing import Any

from torch._inductor.dependencies import ReadWrites
from torch._inductor.scheduler import FusedMixOrderReductions
from torch._inductor.virtualized import V


class _Some:
    """Some nodes of a fused one, as one."""

    def __init__(self, nodes: list[Any]) -> None:
        self._nodes = nodes
        self.read_writes = ReadWrites.merge_list([node.read_writes for node in nodes])

    def get_nodes(self) -> list[Any]:
        return self._nodes


def node_of_launch(node: Any, call_args: list[Any]) -> Any:
    """`node`, for which a launch with `call_args` is written, without what another kernel computes.

    A kernel that reduces in two orders leaves sums of columns in a workspace, and the wrapper adds them up in the place of
    nodes that may be fused into others (SIMDScheduling._codegen_mix_order_reduction). What is fused behind its sums
    is a second launch for the same node, the one without a workspace.
    """
    nodes = list(node.get_nodes())
    mine = [each for each in nodes if each.get_name() not in V.graph.scheduler.removed_ops]
    if isinstance(node, FusedMixOrderReductions):
        if any(str(argument).startswith("workspace_") for argument in call_args):
            return node
        sums = [each for each in node.node2.get_nodes() if each.is_reduction()]
        mine = [each for each in node.node2.get_nodes() if each in mine and each not in sums]
    return node if len(mine) == len(nodes) else _Some(mine)
