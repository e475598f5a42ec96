"""Whether Inductor leaves DeepSpeed's operators where the plan put them.

Inductor may lay out a graph anew for the sake of its peak of memory, and knows nothing of gathers: that is switched
off. Behind its scheduler the order of DeepSpeed's operators is compared with the order in which they were lowered.
"""

from __future__ import annotations

from typing import Any

import torch

from dcsim_deepspeed import job
from dcsim_deepspeed.report import Report


def watch_order(report: Report) -> None:
    """Notes in the report whether the order was kept, in every graph from here on."""
    import torch._inductor.config as config

    config.reorder_for_peak_memory = False
    inner = config._post_fusion_custom_pass

    def check(nodes: list[Any]) -> list[Any]:
        nodes = inner(nodes) if inner is not None else nodes
        kept = _is_in_order(nodes)
        if report.order_kept is not False:
            report.order_kept = kept
            if not kept:
                report.notes.append("Inductor has moved DeepSpeed's operators")
                job.say("Inductor has moved DeepSpeed's operators: launches are not where the plan has them")
        return nodes

    config._post_fusion_custom_pass = check


def _is_in_order(nodes: list[Any]) -> bool:
    """Operations are numbered as they are lowered, in the order of the graph."""
    numbers = [
        int(scheduled.node.get_operation_name().removeprefix("op"))
        for node in nodes
        for scheduled in node.get_nodes()
        if _is_deepspeeds(getattr(scheduled, "node", None))
    ]
    return numbers == sorted(numbers)


def _is_deepspeeds(operation: Any) -> bool:
    overload = getattr(operation, "op_overload", None)
    return isinstance(overload, torch._ops.OpOverload) and overload.namespace == "dc"
