"""Answers as dataclasses. Fields are the keys of dc-sim's JSON files (docs/reference/formats.md): `_ns` are whole
nanoseconds, `_bytes` whole bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dcsim._native import version_and_commit
from dcsim.reading import plain_document

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Stop:
    """Where a step that does not complete stops."""

    task: str
    op: str | None
    requested_bytes: int
    requested_class: str | None
    step: int
    needed_bytes_by_class: dict[str, int] | None


@dataclass(frozen=True)
class Collective:
    """All collectives of one kind in one step."""

    kind: str
    calls: int
    launches: int
    payload_bytes: int
    wire_bytes: int
    busy_ns: int


@dataclass(frozen=True)
class Sources:
    """Shares of the device time whose cost was measured, interpolated or estimated."""

    measured: float
    interpolated: float
    estimated: float


@dataclass(frozen=True)
class WorkloadName:
    """Which recording was asked about; `graph` is the hash of its graph."""

    name: str
    graph: str


@dataclass(frozen=True)
class Result:
    """A predicted step: dc-result/1. `plan` and `cluster` are whole files, which `simulate` takes."""

    origin: str
    outcome: str
    stop: Stop | None
    step_time_ns: int
    bound_ns: int | None
    compute_ns: int
    exposed_communication_ns: int
    no_bound: str | None
    verdict: str
    forward_ns: int
    backward_ns: int
    optimizer_ns: int
    capacity_bytes: int
    compute_gaps_ns: int
    exposed_gaps_ns: int
    exposed_starts_ns: int
    peak_reserved_most_bytes: int
    peak_live_bytes: int
    peak_allocated_bytes: int
    peak_active_bytes: int
    peak_reserved_bytes: int
    outside_allocator_bytes: int
    allocated_after_step_bytes: int | None
    allocator_retries: int
    host_pinned_bytes: int
    peak_live_bytes_by_class: dict[str, int]
    collectives: tuple[Collective, ...]
    tokens_per_second: float
    model_flops_utilisation: float
    sources: Sources
    gpus: int
    workload: WorkloadName
    plan: dict[str, Any]
    cluster: dict[str, Any]
    sm_clock_mhz: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the verdict is "fits"."""
        return self.verdict == "fits"

    def to_dict(self) -> dict[str, Any]:
        """The document that `dc-sim simulate --json` writes."""
        return {"format": "dc-result/1", "versions": {"dc-sim": version_and_commit}, **plain_document(self)}

    def to_frame(self) -> pandas.DataFrame:
        """One row: numbers and texts of the step."""
        return _frame([_row(self)])


@dataclass(frozen=True)
class SweepRow:
    """One step of a sweep. `values` are those of the sweep's keys, as texts; `reserved_bytes` of a step that does not
    fit is what it takes with 1 TiB of memory, None where that is too little."""

    values: dict[str, str]
    reserved_bytes: int | None
    notes: tuple[str, ...]
    result: Result


@dataclass(frozen=True)
class Sweep:
    """Steps side by side: dc-sweep/1."""

    keys: tuple[str, ...]
    rows: tuple[SweepRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """The document that `dc-sim sweep --json` writes."""
        rows = [
            {**plain_document(row), "result": {"format": "dc-result/1", **plain_document(row.result)}} for row in self.rows
        ]
        versions = {"dc-sim": version_and_commit}
        return {"format": "dc-sweep/1", "versions": versions, "keys": list(self.keys), "rows": rows}

    def to_frame(self) -> pandas.DataFrame:
        """A row a step: the keys' values, as numbers where all of a key are, then what `Result.to_frame` has."""
        frame = _frame(
            [{**row.values, "reserved_bytes": row.reserved_bytes, **_row(row.result)} for row in self.rows]
        )
        for key in self.keys:
            try:
                frame[key] = frame[key].map(float)
            except ValueError:
                continue
            if (frame[key] == frame[key].round()).all():
                frame[key] = frame[key].astype("int64")
        return frame


@dataclass(frozen=True)
class Prediction:
    """A predicted step; where it does not fit, bytes and time with 1 TiB of memory, None where that is too little."""

    reserved_bytes: int | None
    step_time_ns: int | None
    profiled: bool
    result: Result


@dataclass(frozen=True)
class Change(Prediction):
    """A step with changes. `how` says what to type or write for them; `cost` is GPU time a token as a part of the
    step's now, None where a step never completes."""

    changes: tuple[str, ...] = ()
    how: str = ""
    cost: float | None = None


@dataclass(frozen=True)
class Untried:
    """A change that was not predicted: why, or the command that makes what it needs."""

    label: str
    reason: str | None = None
    command: str | None = None


@dataclass(frozen=True)
class Fit:
    """Whether a step fits, and what makes it fit or faster, cheapest first: dc-fit/1."""

    now: Prediction
    answers: tuple[Change, ...]
    untried: tuple[Untried, ...]

    def to_frame(self) -> pandas.DataFrame:
        """A row a change, the step as it is first, with no change."""
        rows = [{"changes": "", "how": "", "cost": 1.0, **_row(self.now.result)}]
        rows += [
            {"changes": ", ".join(each.changes), "how": each.how, "cost": each.cost, **_row(each.result)}
            for each in self.answers
        ]
        return _frame(rows)


@dataclass(frozen=True)
class FrontPoint:
    """A schedule that no other beats in both time and memory."""

    outcome: str
    step_time_ns: int
    peak_reserved_bytes: int
    peak_allocated_bytes: int


@dataclass(frozen=True)
class Strategy:
    """A part of the search: how many schedules it tried, and how often it found a better one."""

    name: str
    evaluated: int
    improved: int


@dataclass(frozen=True)
class SearchedPlan:
    """A plan with its prediction; `exposed_ns` is exposed time by kind of collective."""

    summary: str
    exposed_ns: dict[str, int]
    result: Result


@dataclass(frozen=True)
class Baseline(SearchedPlan):
    """A plan that the best one is compared with."""

    name: str = ""


@dataclass(frozen=True)
class DeepSpeedConfig:
    """The DeepSpeed JSON closest to the best plan, what it cannot say, and what it gives itself."""

    config: dict[str, Any]
    missing: tuple[str, ...]
    policy: str
    outcome: str
    step_time_ns: int
    peak_reserved_bytes: int
    peak_allocated_bytes: int


@dataclass(frozen=True)
class Search:
    """The schedule with the shortest step that fits, and its rivals: dc-search/1. `best` is None where nothing fits;
    `best.result.plan` is a plan that `simulate` takes."""

    workload: str
    backend: str
    gpus: int
    memory_limit_bytes: int
    evaluated: int
    folded: int
    stopped: bool
    complete: bool
    strategies: tuple[Strategy, ...]
    front: tuple[FrontPoint, ...]
    best: SearchedPlan | None
    baselines: tuple[Baseline, ...]
    expandable_reserved_bytes: int | None
    deepspeed: DeepSpeedConfig | None
    seed: int
    seconds: float
    schedules_per_second: float

    def to_frame(self) -> pandas.DataFrame:
        """The front, a row a schedule, fastest first."""
        return _frame([plain_document(point) for point in self.front])


@dataclass(frozen=True)
class Workload:
    """A recorded workload. `options` are those of the recorder, `tokens` those of one micro-step."""

    folder: str
    name: str
    tokens: int
    parameters: int
    parameter_tensors: int
    parameter_bytes: int
    options: dict[str, Any] | None


_COLUMNS = (
    "verdict",
    "step_time_ns",
    "bound_ns",
    "tokens_per_second",
    "model_flops_utilisation",
    "forward_ns",
    "backward_ns",
    "optimizer_ns",
    "compute_ns",
    "exposed_communication_ns",
    "peak_reserved_bytes",
    "peak_allocated_bytes",
    "peak_live_bytes",
    "capacity_bytes",
    "gpus",
)


def _row(result: Result) -> dict[str, Any]:
    return {"workload": result.workload.name, **{name: getattr(result, name) for name in _COLUMNS}}


def _frame(rows: list[dict[str, Any]]) -> pandas.DataFrame:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("frames need pandas: pip install pandas") from error
    return pandas.DataFrame(rows)
