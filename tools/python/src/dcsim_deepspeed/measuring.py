"""Steps of a running job as a measured result, which dc-sim shows beside what it predicted."""

from __future__ import annotations

import json
import platform
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from dcsim_deepspeed import job

# DeepSpeed compiles anew at step 5, and the allocator's cache is full some steps later.
_SKIPPED = 8


def measure(engine: Any, path: str | Path, predicted: str | Path, steps: int = 20, skip: int = _SKIPPED) -> None:
    """Times `steps` optimizer steps behind the next `skip`, and writes `path`: a measured dc-result/1.

    predicted   what `dc-sim simulate --json` wrote about this job: its workload, plan and tokens are taken from there

    All ranks have to call it, behind compile(); rank 0 writes. Losses are those of the skipped steps. Between steps
    nothing waits for the GPU; the job goes on as before. Raises ValueError for a file that is no such prediction, or
    one for another number of ranks.
    """
    if steps < 1 or skip < 0:
        raise ValueError(f"expected steps of 1 or more and skip of 0 or more, found {steps} and {skip}")
    _Measuring(engine, Path(path), _prediction(Path(predicted), dist.get_world_size()), steps, skip).begin()


def _prediction(path: Path, ranks: int) -> dict[str, Any]:
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != "dc-result/1" or document.get("origin") != "predicted":
        raise ValueError(f"{path}: expected what dc-sim simulate --json writes")
    if document["outcome"] != "completed":
        raise ValueError(f"{path}: the predicted step does not complete: {document['outcome']}")
    if document["gpus"] != ranks:
        raise ValueError(f"{path}: predicted for {document['gpus']} ranks, this job has {ranks}")
    return document


class _Measuring:
    """Stands around the engine's backward and step until all steps have run."""

    def __init__(self, engine: Any, path: Path, predicted: dict[str, Any], steps: int, skip: int) -> None:
        self.engine = engine
        self.path = path
        self.predicted = predicted
        self.steps = steps
        self.skip = skip
        self.on_gpu = torch.cuda.is_available()
        self.losses: list[Any] = []
        self.micro_losses: list[torch.Tensor] = []
        self.marks: list[Any] = []  # the ends of steps, from the last skipped one on
        self.done = 0

    def begin(self) -> None:
        backward = self.engine.backward

        def measured_backward(loss: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.done < self.skip:
                self.micro_losses.append(loss.detach())
            return backward(loss, *args, **kwargs)

        def ended() -> bool:
            if not self._ended():
                return False
            self.engine.backward = backward
            self._write()
            return True

        self.engine.backward = measured_backward
        job.behind_steps(self.engine, ended)
        if self.skip == 0:
            self._start()

    def _ended(self) -> bool:
        """An optimizer step has ended: whether it was the last one to measure."""
        self.done += 1
        if self.micro_losses:
            self.losses.append(torch.stack(self.micro_losses).mean())
            self.micro_losses.clear()
        if self.done == self.skip:
            self._start()
        elif self.done > self.skip:
            self.marks.append(self._mark())
        return self.done == self.skip + self.steps

    def _start(self) -> None:
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        self.marks.append(self._mark())

    def _mark(self) -> Any:
        if not self.on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _times_ns(self) -> list[int]:
        if not self.on_gpu:
            return [round((after - before) * 1e9) for before, after in zip(self.marks, self.marks[1:])]
        torch.cuda.synchronize()
        return [round(before.elapsed_time(after) * 1e6) for before, after in zip(self.marks, self.marks[1:])]

    def _write(self) -> None:
        times = self._times_ns()
        stats = torch.cuda.memory_stats() if self.on_gpu else {}
        amounts = {
            "allocated": stats.get("allocated_bytes.all.peak", 0),
            "active": stats.get("active_bytes.all.peak", 0),
            "reserved": stats.get("reserved_bytes.all.peak", 0),
            "after": stats.get("allocated_bytes.all.current", 0),
            "retries": stats.get("num_alloc_retries", 0),
        }
        ranks = job.of_all_ranks(self.engine, {"times": times, **amounts})
        if dist.get_rank() == 0:
            from dcrecord.graph_file import write_whole

            document = self._document(ranks)
            write_whole(self.path, (json.dumps(document, indent=1) + "\n").encode())
            job.say(self._told(document))

    def _told(self, document: dict[str, Any]) -> str:
        ours, theirs = self.predicted["step_time_ns"] / 1e6, document["step_time_ns"] / 1e6
        return f"measured {theirs:.2f} ms a step, predicted {ours:.2f} ms ({ours / theirs - 1:+.1%}): {self.path}"

    def _document(self, ranks: list[dict[str, Any]]) -> dict[str, Any]:
        times = [max(each) for each in zip(*(rank["times"] for rank in ranks))]
        step = round(statistics.median(times))
        faster = self.predicted["step_time_ns"] / step
        most = {key: max(rank[key] for rank in ranks) for key in ranks[0] if key != "times"}
        return {
            "format": "dc-result/1",
            "origin": "measured",
            "outcome": "completed",
            "stop": None,
            "step_time_ns": step,
            "bound_ns": None,
            "compute_ns": 0,
            "exposed_communication_ns": 0,
            "peak_live_bytes": 0,
            "peak_allocated_bytes": most["allocated"],
            "peak_active_bytes": most["active"],
            "peak_reserved_bytes": most["reserved"],
            "allocated_after_step_bytes": most["after"],
            "allocator_retries": most["retries"],
            "host_pinned_bytes": 0,
            "peak_live_bytes_by_class": {},
            "collectives": [],
            "tokens_per_second": round(self.predicted["tokens_per_second"] * faster, 6),
            "model_flops_utilisation": round(self.predicted["model_flops_utilisation"] * faster, 6),
            "sources": {"measured": 1.0, "interpolated": 0.0, "estimated": 0.0},
            "gpus": len(ranks),
            "workload": self.predicted["workload"],
            "step_times_ns": times,
            "losses": [float(loss) for loss in self.losses],
            "ranks": [
                {
                    "peak_allocated_bytes": rank["allocated"],
                    "least_peak_allocated_bytes": rank["allocated"],
                    "peak_reserved_bytes": rank["reserved"],
                }
                for rank in ranks
            ],
            "versions": _versions(),
            "machine": _machine(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "plan": self.predicted["plan"],
            "cluster": None,
        }


def _versions() -> dict[str, str]:
    import deepspeed

    versions = {"torch": torch.__version__, "deepspeed": deepspeed.__version__}
    if torch.cuda.is_available():
        versions["cuda"] = str(torch.version.cuda)
        versions["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return versions


def _machine() -> dict[str, Any]:
    if not torch.cuda.is_available():
        name = platform.processor() or platform.machine()
        return {"gpu": "none", "gpus": 1, "gpu_memory_bytes": 0, "multiprocessors": 1, "cpu": name, "driver": ""}
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "gpu": properties.name,
        "gpus": torch.cuda.device_count(),
        "gpu_memory_bytes": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "cpu": _first_match("/proc/cpuinfo", r"model name\s*:\s*(.*)"),
        "driver": _first_match("/proc/driver/nvidia/version", r"Kernel Module\D*([\d.]+)"),
    }


def _first_match(path: str, pattern: str) -> str:
    try:
        found = re.search(pattern, Path(path).read_text())
    except OSError:
        return ""
    return found[1] if found else ""
