"""Runs jobs of train.py on CPU ranks, and dc-sim, from a test or a script."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
SEARCHED_CLUSTER = ROOT / "configs/clusters/h200-2.yaml"
SPACE = ROOT / "configs/spaces/deepspeed.yaml"
# Seconds for one launch of train.py: ten times what the longest takes on two cores of a server CPU.
LIMIT = 700
# Lines of a thread's stack that are shown, innermost call first.
SHOWN = 25


def dc_sim() -> Path:
    """The program that is tested; DCSIM_BIN names its folder."""
    return Path(os.environ.get("DCSIM_BIN", ROOT / "build/dev/bin")) / "dc-sim"


def cpu_environment(folder: Path) -> dict[str, str]:
    """For a process that runs DeepSpeed on a CPU rank; Inductor's cache lies in `folder`."""
    path = [HERE, ROOT / "tools/python/src", ROOT / "tools/dcrecord/src", os.environ.get("PYTHONPATH", "")]
    return dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(map(str, path)),
        DS_ACCELERATOR="cpu",
        OMP_NUM_THREADS="1",
        TORCHINDUCTOR_COMPILE_THREADS="1",
        TORCHINDUCTOR_CACHE_DIR=str(folder / "inductor"),
        CUDA_VISIBLE_DEVICES="",
    )


def run_jobs(jobs: list[dict[str, Any]], folder: Path, ranks: int = 2) -> dict[str, Any]:
    """Results by name, and under "output" what rank 0 and the others printed."""
    asked, told = folder / "jobs.json", folder / "results.json"
    told.unlink(missing_ok=True)
    asked.write_text(json.dumps(jobs))
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", f"--master_port={_port()}"]
    done = subprocess.run(
        [*command, str(HERE / "train.py"), str(asked), str(told)],
        env=cpu_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode != 0 or not told.exists():
        raise RuntimeError(f"the jobs ended with {done.returncode}:\n{done.stdout[-6000:]}\n{_where_they_hung(folder)}")
    return {**json.loads(told.read_text()), "output": done.stdout}


def _where_they_hung(folder: Path) -> str:
    """The job that each rank was in and its innermost calls; nothing of ranks that did not hang."""
    told = []
    for path in sorted(folder.glob("hang-*.txt")):
        before, timeout, stack = path.read_text().partition("Timeout")
        if timeout:
            threads = [each for each in stack.split("\n\n") if "<no Python frame>" not in each]
            calls = [line for each in threads for line in each.splitlines()[:SHOWN]]
            told.append("\n".join([path.stem, *before.splitlines()[-1:], *calls]))
    return "\n".join(told)


def _port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def search(folder: Path, launches: Path, schedules: int = 500) -> dict[str, Any]:
    """Searches the recorded workload in `folder` for a plan, and returns what it wrote."""
    command = [dc_sim(), "search", folder, "--cluster", SEARCHED_CLUSTER, "--space", SPACE]
    command += ["--schedules", str(schedules), "--save-deepspeed-plan", launches, "--save-plan", plan_of(launches)]
    _run(command)
    return json.loads(launches.read_text())


def plan_of(launches: Path) -> Path:
    """Where `search` saves the whole plan of a launches file."""
    return launches.with_suffix(".plan.json")


def predict(folder: Path, plan: Path, predicted: Path) -> None:
    """Simulates a plan of the recorded workload in `folder`."""
    _run([dc_sim(), "simulate", folder, "--cluster", SEARCHED_CLUSTER, "--plan", plan, "--json", predicted])


def compare(folder: Path, measured: Path) -> str:
    """What dc-sim says of a measured step beside its prediction."""
    return _run([dc_sim(), "compare", measured, "--workload", folder, "--cluster", SEARCHED_CLUSTER])


def _run(command: list[Any]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"dc-sim {command[1]} ended with {done.returncode}: {done.stderr}")
    return done.stdout
