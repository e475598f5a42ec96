"""The graphs of a running job as a workload that dc-sim reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch.distributed as dist

from dcsim_deepspeed import job
from dcsim_deepspeed.live_graph import Half, copied, document_of_job
from dcsim_deepspeed.report import Report

PASS = "dcsim_record"
# Seconds for lowering a step; an 8B model takes two minutes on one core, and other ranks wait.
_LONGEST = 500


def record(
    engine: Any,
    folder: str | Path,
    allow_untested: bool = False,
    backend: str | None = None,
    compile_kwargs: dict[str, Any] | None = None,
) -> Report:
    """In place of engine.compile(): the job trains as it would, and its first step writes `folder`/graph.json.xz.

    All ranks have to call it; rank 0 writes. What cannot be recorded is said in one line, and training goes on: then
    there is no file. Graphs are those that DeepCompile gets, before anything is inserted. Where Inductor compiles them,
    rank 0 also writes what it makes of them for an H100 or H200 (`dcrecord lower`), which takes about a minute.
    """
    report = Report()
    engine.dcsim_report = report
    arguments: dict[str, Any] = {"compile_kwargs": compile_kwargs or {}}
    if backend is not None:
        arguments["backend"] = backend
    problem = job.version_problem(allow_untested) or job.engine_problem(engine) or _folder_problem(Path(folder))
    problems = [each for each in job.of_all_ranks(engine, problem) if each]
    if problems:
        report.reason = problems[0]
        job.say(f"this job is not recorded: {problems[0]}")
        job.own_compile(engine)(**arguments)
        return report
    recording = _Recording(engine, Path(folder), report, lower=backend != "eager")
    engine.register_compile_pass(PASS, recording.run)
    step = engine.global_steps
    schedule = [(step, [PASS, *job.OWN_FIRST_PASSES]), (step + job.WARM_UP, job.OWN_LATER_PASSES)]
    job.own_compile(engine)(schedule=schedule, **arguments)
    job.start_at(engine, step)
    return report


def _folder_problem(folder: Path) -> str:
    try:
        from dcrecord.graph_file import check_folder
    except ImportError as error:
        return f"the recorder is missing ({error}): pip install 'dcsim[record]'"
    try:
        check_folder(folder)
    except OSError as error:
        return str(error)
    return ""


def _lower(folder: Path) -> str:
    """Writes the compiled form of what was recorded; why not, where it could not. In a process of its own, which sees no
    GPU: it makes PyTorch believe in another."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TORCHINDUCTOR_")}
    environment.update(CUDA_VISIBLE_DEVICES="", PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-m", "dcrecord", "lower", str(folder)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return f"it took more than {_LONGEST} s ({' '.join(command[1:])})"
    lines = done.stderr.strip().splitlines()
    return "" if done.returncode == 0 else (lines[-1].removeprefix("dcrecord: error: ") if lines else "no reason was said")


class _Recording:
    """The halves of a step's graphs, as they come."""

    def __init__(self, engine: Any, folder: Path, report: Report, lower: bool) -> None:
        self.engine = engine
        self.folder = folder
        self.report = report
        self.lower = lower
        self.forwards: dict[int, Half] = {}
        self.done = False

    def run(
        self,
        module: Any,
        graph_id: int,
        graph_order: list[tuple[int, bool]],
        profiling_results: Any,
        create_inputs: Any,
        memory_budget: float,
        managers: Any,
        backward: bool,
    ) -> None:
        """The pass, called by DeepSpeed for each graph. It changes nothing."""
        if self.done or dist.get_rank() != 0:
            return
        try:
            with job.outside_of_tracing():
                self._take(module, graph_id, graph_order, profiling_results[graph_id], create_inputs, managers, backward)
        except Exception as error:  # whatever it is, the job goes on
            self._give_up(error)

    def _take(
        self,
        module: Any,
        graph_id: int,
        graph_order: list[tuple[int, bool]],
        profiling: Any,
        create_inputs: Any,
        managers: Any,
        backward: bool,
    ) -> None:
        manager = managers[graph_id]
        if not backward:
            returned = profiling.num_fwd_outputs
            self.forwards[graph_id] = Half(copied(module, manager), create_inputs(), profiling.param_indices, returned)
            return
        if len(graph_order) > 1:
            raise RuntimeError(
                f"its step has {len(graph_order)} graphs: graph breaks are not recorded "
                "(TORCH_LOGS=graph_breaks says where they are)"
            )
        half = Half(copied(module, manager), (), profiling.param_indices, 0)
        document = document_of_job(self.engine, self.folder.name, self.forwards[graph_id], half)
        self._write(document)

    def _write(self, document: dict[str, Any]) -> None:
        from dcrecord.graph_file import GRAPH_FILE, to_bytes, write_whole

        path = self.folder / GRAPH_FILE
        write_whole(path, to_bytes(document, compressed=True))
        ops = sum(len(graph["ops"]) for graph in document["graphs"])
        self.done = True
        self.forwards.clear()
        self.report.notes.append(f"recorded {path}")
        job.say(f"recorded this job's step: {path}, {ops:,} ops")
        if self.lower:
            problem = _lower(self.folder)
            told = f"its compiled form is not recorded: {problem}" if problem else "recorded its compiled form"
            self.report.notes.append(told)
            job.say(told)

    def _give_up(self, error: Exception) -> None:
        self.done = True
        self.forwards.clear()
        text = str(error) or type(error).__name__
        self.report.reason = text
        job.say(f"this job is not recorded: {text}")
