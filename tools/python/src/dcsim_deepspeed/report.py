"""What came of a plan, as an attribute of the engine: `engine.dcsim_report`."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from dcsim_deepspeed import job
from dcsim_deepspeed.placing import Placed

# Steps before these compile, or fill the allocator's cache.
_FIRST_STEPS = 3
_MOST_STEPS = 1000


@dataclass
class Report:
    """applied               whether the plan's schedule runs; decided for good when the first backward is compiled
    reason                   why DeepSpeed's own schedule runs instead, else empty
    graphs                   by compiled graph, in order of compilation
    kept_bytes               of the parameters that stay gathered
    order_kept               whether launches, waits and releases run in the plan's order behind Inductor; None: another backend
    predicted_step_ms        for the cluster that the plan was found for
    step_ms                  host's time from step to step
    """

    applied: bool = False
    reason: str = ""
    notes: list[str] = field(default_factory=list)
    graphs: list[Placed] = field(default_factory=list)
    kept_bytes: int = 0
    order_kept: bool | None = None
    predicted_step_ms: float | None = None
    step_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_STEPS))

    def measured_step_ms(self) -> float | None:
        """Median of the steps behind the first few, or None before there are any."""
        return statistics.median(self.step_ms) if self.step_ms else None

    def to_json(self) -> dict[str, Any]:
        """Numbers of the report, launches by count."""
        return {
            "applied": self.applied,
            "reason": self.reason,
            "notes": self.notes,
            "graphs": [
                {
                    "direction": graph.direction,
                    "params": graph.params,
                    "launches": len(graph.launches),
                    "moved": graph.moved,
                    "added": graph.added,
                    "out_of_order": graph.out_of_order,
                }
                for graph in self.graphs
            ],
            "kept_bytes": self.kept_bytes,
            "order_kept": self.order_kept,
            "predicted_step_ms": self.predicted_step_ms,
            "measured_step_ms": self.measured_step_ms(),
        }

    def __str__(self) -> str:
        if not self.applied:
            return f"DeepSpeed's own schedule runs: {self.reason or 'nothing has been compiled yet'}"
        launches = ", ".join(f"{graph.direction} {len(graph.launches)}" for graph in self.graphs)
        moved = sum(len(graph.moved) for graph in self.graphs)
        measured = self.measured_step_ms()
        return (
            f"the plan runs: launches {launches}; {moved} parameters gathered later than planned; "
            f"{self.kept_bytes / 2**20:.1f} MiB stay gathered; step "
            f"{'not measured yet' if measured is None else f'{measured:.2f} ms'}, "
            f"predicted {self.predicted_step_ms:.2f} ms"
        )


def time_steps(engine: Any, report: Report) -> None:
    """Lets the engine's step note the time since the step before it, where the optimizer has stepped."""
    last: dict[str, float] = {}
    first = engine.global_steps + _FIRST_STEPS

    def note() -> None:
        now = time.perf_counter()
        if "end" in last and engine.global_steps > first:
            report.step_ms.append((now - last["end"]) * 1e3)
        last["end"] = now

    job.behind_steps(engine, note)
