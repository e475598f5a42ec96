"""The questions of dc-sim as functions."""

from __future__ import annotations

import json
import os
import pathlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dcsim import _native
from dcsim.errors import InputError, InputNote
from dcsim.reading import read_document
from dcsim.results import Fit, Result, Search, Sweep, Workload

T = TypeVar("T")

# A file, a name that comes with dcsim ("h200-8"), or the document itself.
Document = str | os.PathLike | Mapping[str, Any]
Folder = str | os.PathLike | Workload


def load(folder: str | os.PathLike) -> Workload:
    """Facts about the workload that dcrecord wrote into a folder. Raises InputError where there is none."""
    return _ask(_native.load, _path("folder", folder), Workload)


def simulate(
    workload: Folder,
    *,
    cluster: Document,
    plan: Document,
    gpus: int | None = None,
    batch: int | None = None,
    seq: int | None = None,
    set: Mapping[str, Any] | None = None,
    cluster_set: Mapping[str, Any] | None = None,
    profile: bool = True,
) -> Result:
    """One optimizer step: the options are those of `dc-sim simulate`.

    workload      folder, or what `load` returned
    plan          a plan, its spec, or a DeepSpeed configuration
    gpus          data-parallel ranks; all of the cluster if left out
    batch, seq    takes the recording of these sizes from the folders beside the workload
    set           fields of the plan that change; cluster_set: of the cluster
    profile       False prices ops by the roofline

    A step that does not fit is a result, too. Raises InputError for bad input. Warns (InputNote) of what is not used.
    """
    step = _step(
        workload, cluster=cluster, plan=plan, gpus=gpus, batch=batch, seq=seq,
        set=set, cluster_set=cluster_set, profile=profile,
    )
    return _ask(_native.simulate, step, Result)


def report(
    out: str | os.PathLike,
    workload: Folder,
    *,
    search: Search | None = None,
    measured: Document | None = None,
    **options: Any,
) -> Result:
    """Writes the page about one step that `dc-sim simulate --report` writes, and returns its result.

    search     an answer of `search`, whose front is drawn
    measured   a result of `dc-run step` or `dcsim_deepspeed.measure`, to be shown beside the prediction
    options    those of `simulate`

    Raises InputError for bad input; then nothing is written.
    """
    question = _native.ReportQuestion()
    question.step = _step(workload, **options)
    question.rivals = [] if search is None else _rivals(search)
    question.measured = "" if measured is None else _document("measured", measured)
    answer = _answer(_native.report, question)
    pathlib.Path(out).write_text(answer["page"], encoding="utf-8")
    return read_document(Result, answer["result"])


def sweep(
    workload: Folder,
    *,
    plan: Document | Sequence[Document] | Mapping[str, Document],
    vary: Mapping[str, Sequence[Any]] | None = None,
    cluster: Document | None = None,
    gpus: int | None = None,
    batch: int | None = None,
    seq: int | None = None,
    set: Mapping[str, Any] | None = None,
    cluster_set: Mapping[str, Any] | None = None,
    profile: bool = True,
    threads: int | None = None,
) -> Sweep:
    """The step for every combination of values, and of several plans: `dc-sim sweep`.

    vary   values by key: batch, seq, gpus, cluster, cluster.KEY, or a key of the plan
    plan   one plan, or a list of them
    """
    plans = list(plan) if isinstance(plan, Sequence) and not isinstance(plan, str) else [plan]
    question = _native.SweepQuestion()
    question.step = _step(
        workload, cluster=cluster, gpus=gpus, batch=batch, seq=seq,
        set=set, cluster_set=cluster_set, profile=profile,
    )
    question.plans = [_document("plan", each) for each in plans]
    question.vary = [f"{key}=" + ",".join(_text(each) for each in values) for key, values in (vary or {}).items()]
    question.threads = _count("threads", threads)
    return _ask(_native.sweep, question, Sweep)


def fit(
    workload: Folder,
    *,
    cluster: Document,
    plan: Document = "zero3-deepcompile",
    gpus: int | None = None,
    batch: int | None = None,
    seq: int | None = None,
    set: Mapping[str, Any] | None = None,
    cluster_set: Mapping[str, Any] | None = None,
    profile: bool = True,
    record: bool = True,
    threads: int | None = None,
) -> Fit:
    """Whether the step fits, and what makes it fit or faster: `dc-sim fit`.

    record   where nothing else fits, missing recordings are made by dcrecord, if it is in PATH
    """
    question = _native.FitQuestion()
    question.step = _step(
        workload, cluster=cluster, plan=plan, gpus=gpus, batch=batch, seq=seq,
        set=set, cluster_set=cluster_set, profile=profile,
    )
    question.record = record
    question.threads = _count("threads", threads)
    return _ask(_native.fit, question, Fit)


def search(
    workload: Folder,
    *,
    cluster: Document,
    gpus: int | None = None,
    batch: int | None = None,
    seq: int | None = None,
    cluster_set: Mapping[str, Any] | None = None,
    profile: bool = True,
    space: Document | None = None,
    backend: str | None = None,
    memory_limit: str | int | None = None,
    baseline: Document | None = None,
    start: Sequence[Document] = (),
    schedules: int | None = None,
    time: float | None = None,
    exhaustive: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Search:
    """The schedule with the shortest step that fits: `dc-sim search`. Ctrl-C ends it with what it has.

    memory_limit   bytes, or a text such as "60GiB"
    time           seconds after which to stop
    """
    if backend not in (None, "aten", "inductor"):
        raise InputError(f"backend: expected aten or inductor, found {backend!r}")
    if time is not None and not time > 0:
        raise InputError(f"time: expected seconds above 0, found {time!r}")
    question = _native.SearchQuestion()
    question.workload = _folder(workload)
    question.sizes = _sizes(batch, seq)
    question.cluster = _document("cluster", cluster)
    question.cluster_overrides = _overrides(cluster_set)
    question.times = _native.OpTimes.PROFILED if profile else _native.OpTimes.ROOFLINE
    question.space = "" if space is None else _document("space", space)
    question.backend = backend or ""
    question.memory_limit = "" if memory_limit is None else _bytes(memory_limit)
    question.baseline = "" if baseline is None else _document("baseline", baseline)
    question.starts = [_document("start", each) for each in start]
    question.gpus = _count("gpus", gpus)
    question.threads = _count("threads", threads)
    question.seed = seed
    if schedules is not None:
        question.schedules = _count("schedules", schedules)
    question.time = time or 0
    question.exhaustive = exhaustive
    return _ask(_native.search, question, Search)


def _rivals(search: Search) -> list[Any]:
    """What a search found and was compared with, as far as it completes."""
    steps = [("", each) for each in search.front]
    steps += [(each.name, each.result) for each in search.baselines if each.result.outcome == "completed"]
    return [_native.RivalStep(name, each.step_time_ns, each.peak_reserved_bytes) for name, each in steps]


def _ask(ask: Callable[[Any], Any], question: Any, kind: type[T]) -> T:
    return read_document(kind, _answer(ask, question))


def _answer(ask: Callable[[Any], Any], question: Any) -> dict[str, Any]:
    answer = ask(question)
    for note in answer.notes.splitlines():
        warnings.warn(note, InputNote, stacklevel=4)
    return json.loads(answer.json)


def _step(
    workload: Folder,
    *,
    cluster: Document | None,
    plan: Document = "",
    gpus: int | None = None,
    batch: int | None = None,
    seq: int | None = None,
    set: Mapping[str, Any] | None = None,
    cluster_set: Mapping[str, Any] | None = None,
    profile: bool = True,
) -> Any:
    step = _native.StepOptions()
    step.workload = _folder(workload)
    step.sizes = _sizes(batch, seq)
    step.cluster = "" if cluster is None else _document("cluster", cluster)
    step.plan = plan if plan == "" else _document("plan", plan)
    step.gpus = _count("gpus", gpus)
    step.times = _native.OpTimes.PROFILED if profile else _native.OpTimes.ROOFLINE
    step.overrides = _overrides(set)
    step.cluster_overrides = _overrides(cluster_set)
    return step


def _folder(workload: Folder) -> str:
    return workload.folder if isinstance(workload, Workload) else _path("workload", workload)


def _path(name: str, path: str | os.PathLike) -> str:
    text = os.fspath(path)
    if not text:
        raise InputError(f"{name}: expected a value, found an empty text")
    return text


def _document(name: str, value: Document) -> str:
    """A path, or the text of a document."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else _path(name, value)


def _sizes(batch: int | None, seq: int | None) -> Any:
    sizes = _native.StepOptions().sizes
    sizes.batch = _count("batch", batch)
    sizes.sequence = _count("seq", seq)
    return sizes


def _count(name: str, value: int | None) -> int:
    """A whole number of at least 1; 0, which means the default, where it is left out."""
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= value.__index__() < 2**31:
        raise InputError(f"{name}: expected a whole number of at least 1, found {value!r}")
    return value.__index__()


def _text(value: Any) -> str:
    """A value as --set and --vary take it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _overrides(changes: Mapping[str, Any] | None) -> list[str]:
    return [f"{key}={_text(value)}" for key, value in (changes or {}).items()]


def _bytes(limit: str | int) -> str:
    return limit if isinstance(limit, str) else f"{limit} B"
