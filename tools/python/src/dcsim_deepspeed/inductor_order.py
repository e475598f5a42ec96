"""Keeps DeepSpeed's operators where the plan put them when Inductor lowers a graph.

Inductor may lay out a graph anew for the sake of its peak of memory, and knows nothing of gathers: that is switched
off. It also fuses early kernels with late ones, and pulls what these need ahead of launches, which have no result that
anything needs. Behind its scheduler launches are put back where they were lowered, and the order of launches, waits and
releases is compared with that. Reductions are not looked at: a plan does not place them, and they come where the fused
kernel of their gradient ends.
"""

from __future__ import annotations

from typing import Any

import torch

from dcsim_deepspeed import job
from dcsim_deepspeed.report import Report


def watch_order(report: Report) -> None:
    """Notes in the report whether the order was kept, in every graph from here on."""
    import torch._functorch.config as autograd
    import torch._inductor.config as config

    config.reorder_for_peak_memory = False
    # A graph out of these caches is not scheduled, so its order would not be seen; and they cannot store a pass.
    config.fx_graph_cache = False
    autograd.enable_autograd_cache = False
    config._post_fusion_custom_pass = _Watch(report, config._post_fusion_custom_pass)


# Of DeepSpeed's operators, those whose places a plan decides.
_PLACED = ("allgather_param", "prefetch_params_fused", "wait_allgather", "release_param")


class _Watch:
    """Called by Inductor's scheduler with the nodes in their last order."""

    def __init__(self, report: Report, inner: Any) -> None:
        self.report = report
        self.inner = inner

    def __call__(self, nodes: list[Any]) -> list[Any]:
        nodes = self.inner(nodes) if self.inner is not None else nodes
        nodes = _with_launches_put_back(nodes)
        moved = _first_moved(nodes)
        if self.report.order_kept is not False:
            self.report.order_kept = moved is None
            if moved is not None:
                self.report.notes.append(f"Inductor has moved DeepSpeed's operators, first {moved}")
                job.say(f"Inductor has moved DeepSpeed's operators, first {moved}: launches are not where the plan has them")
        return nodes


def _with_launches_put_back(nodes: list[Any]) -> list[Any]:
    """Each launch in front of the first node that holds later operations alone, but not in front of an earlier launch."""
    launches = [node for node in nodes if _is_launch(node)]
    placed = [node for node in nodes if not _is_launch(node)]
    for launch in sorted(launches, key=_first_number, reverse=True):
        number = _first_number(launch)
        later = (index for index, node in enumerate(placed) if _first_number(node) > number)
        placed.insert(next(later, len(placed)), launch)
    return placed


def _is_launch(node: Any) -> bool:
    """A launch alone reads nothing but parameters, so it may stand anywhere."""
    inner = node.get_nodes()
    overload = getattr(getattr(inner[0], "node", None), "op_overload", None)
    return len(inner) == 1 and overload is torch.ops.dc.prefetch_params_fused.default


def _first_number(node: Any) -> int:
    """Operations are numbered as they are lowered, in the order of the graph. Of a node without one: before all."""
    operations = (getattr(scheduled, "node", None) for scheduled in node.get_nodes())
    return min((_number(operation) for operation in operations if operation is not None), default=-1)


def _number(operation: Any) -> int:
    return int(operation.get_operation_name().removeprefix("op"))


def _first_moved(nodes: list[Any]) -> str | None:
    """The first of DeepSpeed's operators that comes behind one which was lowered later."""
    latest = -1
    for node in nodes:
        for scheduled in node.get_nodes():
            operation = getattr(scheduled, "node", None)
            if not _is_placed(operation):
                continue
            number = _number(operation)
            if number < latest:
                return f"{operation.op_overload.name()} (op{number}, behind op{latest})"
            latest = number
    return None


def _is_placed(operation: Any) -> bool:
    overload = getattr(operation, "op_overload", None)
    is_deepspeeds = isinstance(overload, torch._ops.OpOverload) and overload.namespace == "dc"
    return is_deepspeeds and overload._schema.name.removeprefix("dc::") in _PLACED
