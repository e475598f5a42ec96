"""dc-sim from Python: time and memory of a ZeRO step, before the job starts (docs/guide/python.md).

    import dcsim

    step = dcsim.simulate("traces/qwen3-8b", cluster="h200-8", plan="zero3-deepcompile")
    print(step.verdict, step.step_time_ns / 1e6, "ms")

Every number is the one that the program dc-sim gives: both ask the same functions.
"""

try:
    from dcsim import _native  # noqa: F401
except ImportError as error:
    raise ImportError(f"dcsim needs its compiled module (docs/guide/python.md): {error}") from error

from dcrecord.version import VERSION as __version__
from dcsim.asking import fit, load, report, search, simulate, sweep
from dcsim.errors import InputError, InputNote, SystemFailure
from dcsim.recording import record
from dcsim.results import (
    Baseline,
    Change,
    Collective,
    DeepSpeedConfig,
    Fit,
    FrontPoint,
    Prediction,
    Result,
    Search,
    SearchedPlan,
    Sources,
    Stop,
    Strategy,
    Sweep,
    SweepRow,
    Untried,
    Workload,
    WorkloadName,
)

__all__ = [
    "Baseline",
    "Change",
    "Collective",
    "DeepSpeedConfig",
    "Fit",
    "FrontPoint",
    "InputError",
    "InputNote",
    "Prediction",
    "Result",
    "Search",
    "SearchedPlan",
    "Sources",
    "Stop",
    "Strategy",
    "Sweep",
    "SweepRow",
    "SystemFailure",
    "Untried",
    "Workload",
    "WorkloadName",
    "__version__",
    "fit",
    "load",
    "record",
    "report",
    "search",
    "simulate",
    "sweep",
]
