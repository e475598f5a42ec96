#!/usr/bin/env python3
"""A found schedule inside DeepSpeed, on GPUs: records a job, searches, trains with the plan, beside DeepCompile's own schedule.

    python3 tests/gpu/deepspeed_bridge.py --gpus 1 --wheels WHEELS --dc-sim build/dev/bin/dc-sim --out FOLDER
    python3 tests/gpu/deepspeed_bridge.py --wheels WHEELS --jobs llama-3.2-1b:default:1,own:gathers,own:best.json --out FOLDER

From the source folder; python3 has torch 2.11 and transformers, WHEELS holds DeepSpeed and what it needs and that Python lacks.
For each model the first job trains with DeepCompile's own schedule and records itself, dc-sim searches on that recording,
and the second job trains with what was found. --jobs names jobs instead, and nothing is searched.
FOLDER gets results.jsonl (a line a job), the recordings, the plans and the logs. A job that does not fit into what is left of
--limit is left out, and said so. Ends with 1 where a job failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Seconds that a job may take: compiling twice takes most of it.
MOST_FOR_A_JOB = 330
LEAST_FOR_A_JOB = 60


@dataclass(frozen=True)
class Asked:
    """A job of --jobs."""

    model: str
    mode: str
    stage: str = "3"
    plan: str = ""

    @staticmethod
    def read(text: str) -> Asked:
        model, mode, *stage = text.split(":")
        return Asked(model, "plan", plan=mode) if mode.endswith(".json") else Asked(model, mode, *stage)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--models", default="llama-3.2-1b,own")
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--dc-sim", type=Path, default=ROOT / "build/dev/bin/dc-sim")
    parser.add_argument("--cluster", type=Path, help="configs/clusters/h200-GPUS.yaml if left out")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--schedules", type=int, default=20000)
    parser.add_argument(
        "--jobs",
        type=lambda text: [Asked.read(each) for each in text.split(",")],
        default=[],
        help="MODEL:MODE or MODEL:MODE:STAGE, by commas; modes of deepspeed_job.py, or the file of a plan",
    )
    parser.add_argument("--repeat", action="store_true", help="DeepSpeed's own schedule once more: what two runs differ by")
    parser.add_argument("--trace", action="store_true", help="each job ends with a step that PyTorch's profiler traces")
    parser.add_argument(
        "--predictions",
        type=Path,
        help="folder of MODEL-stageN-MODE.json, as dc-sim simulate --json writes: such jobs also write OUT/measured/ "
        "for dc-sim compare",
    )
    parser.add_argument("--calibrate", action="store_true", help="first python -m dcsim_deepspeed calibrate")
    parser.add_argument("--limit", type=float, default=540, help="seconds for everything")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def name_of(model: str) -> str:
    return Path(model).parent.name if model.endswith(".py") else model


class Bridge:
    """One run of this script."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.started = time.monotonic()
        self.failed = False
        self.out = arguments.out.absolute()
        self.out.mkdir(parents=True, exist_ok=True)
        self.site = Path(tempfile.mkdtemp(prefix="deepspeed-"))
        sources = [ROOT / "tools/python/src", ROOT / "tools/dcrecord/src", ROOT / "tools/oracles"]
        path = [*sources, self.site, os.environ.get("PYTHONPATH", "")]
        self.environment = dict(
            os.environ,
            PYTHONPATH=os.pathsep.join(map(str, path)),
            PYTHONUNBUFFERED="1",
            DS_ACCELERATOR="cuda",
            OMP_NUM_THREADS="8",
            TORCHINDUCTOR_COMPILE_THREADS="8",
            TORCHINDUCTOR_CACHE_DIR=str(self.site / "inductor"),
            TORCH_EXTENSIONS_DIR=str(self.site / "extensions"),
            HF_HUB_OFFLINE="1",
            TOKENIZERS_PARALLELISM="false",
        )
        # NVLink multicast needs rights that a container may lack.
        for name, value in {
            "NCCL_NVLS_ENABLE": "0",
            "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
            "NVSHMEM_DISABLE_NVLS": "1",
        }.items():
            self.environment.setdefault(name, value)

    def left(self) -> float:
        return self.arguments.limit - (time.monotonic() - self.started)

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:4.0f} s] {text}", flush=True)

    def run(self, name: str, command: list[str], most: float = MOST_FOR_A_JOB) -> bool:
        """Runs a command with its own limit; what it prints goes to FOLDER/logs.txt, its end to stdout if it fails."""
        limit = min(most, self.left() - 5)
        if limit < 5:
            self.say(f"{name}: left out, no time is left")
            return False
        done = subprocess.run(
            ["timeout", "--kill-after=10", f"{limit:.0f}", *command],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        with open(self.out / "logs.txt", "a", encoding="utf-8") as log:
            log.write(f"######## {name}: {done.returncode}\n{done.stdout[-100_000:]}\n")
        lines = [line for line in done.stdout.splitlines() if line.startswith("dc-sim: ")]
        self.say(f"{name}: " + ("done" if done.returncode == 0 else f"ended with {done.returncode}"))
        print("\n".join(lines if done.returncode == 0 else [*lines, *done.stdout.splitlines()[-25:]]), flush=True)
        self.failed = self.failed or done.returncode != 0
        return done.returncode == 0

    def install(self) -> bool:
        wheels = [str(each) for each in sorted(self.arguments.wheels.absolute().glob("*.whl"))]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--upgrade"]
        build = "from deepspeed.ops.op_builder.dc import DeepCompileBuilder; DeepCompileBuilder().load()"
        installed = self.run("wheels", [*pip, "--target", str(self.site), *wheels])
        if self.arguments.jobs and all(job.mode == "eager" for job in self.arguments.jobs):
            return installed
        return installed and self.run("building DeepCompile's operators", [sys.executable, "-c", build])

    def job(self, model: str, mode: str, *extra: str, stage: str = "3") -> bool:
        if self.left() < LEAST_FOR_A_JOB:
            self.say(f"{model}, {mode}: left out, {self.left():.0f} s are left")
            return False
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={self.arguments.gpus}"]
        command += ["tests/gpu/deepspeed_job.py", "--model", model, "--mode", mode, "--stage", stage, *extra]
        command += ["--steps", str(self.arguments.steps), "--out", str(self.out / "results.jsonl")]
        case = f"{name_of(model)}-stage{stage}-{mode}.json"
        if self.arguments.predictions and (self.arguments.predictions / case).exists():
            (self.out / "measured").mkdir(exist_ok=True)
            command += ["--predicted", str(self.arguments.predictions.absolute() / case)]
            command += ["--measured", str(self.out / "measured" / case)]
        if self.arguments.trace:
            command += ["--trace", str(self.out / "traces")]
        return self.run(f"{model}, {mode}", command)

    def search(self, model: str, plan: Path) -> bool:
        cluster = self.arguments.cluster or ROOT / f"configs/clusters/h200-{self.arguments.gpus}.yaml"
        command = [str(self.arguments.dc_sim), "search", str(self.out / model), "--cluster", str(cluster)]
        command += ["--space", "configs/spaces/deepspeed.yaml", "--schedules", str(self.arguments.schedules)]
        return self.run(f"{model}, search", [*command, "--save-deepspeed-plan", str(plan)])

    def all(self) -> int:
        if self.install():
            if self.arguments.calibrate:
                command = [sys.executable, "-m", "dcsim_deepspeed", "calibrate", "--out", str(self.out / "host.yaml")]
                self.run("calibrate", [*command, "--samples", str(self.out / "host.json")], 120)
            if self.arguments.jobs:
                self.asked()
            else:
                self.searched()
        self.compare()
        return 1 if self.failed else 0

    def asked(self) -> None:
        for asked in self.arguments.jobs:
            extra = []
            if asked.mode == "record":
                extra = ["--folder", str(self.out / name_of(asked.model))]
            elif asked.mode == "plan":
                extra = ["--plan", str(Path(asked.plan).absolute())]
            self.job(asked.model, asked.mode, *extra, stage=asked.stage)

    def searched(self) -> None:
        for model in self.arguments.models.split(","):
            name = name_of(model)
            plan = self.out / f"{name}.plan.json"
            if self.job(model, "record", "--folder", str(self.out / name)) and self.search(name, plan):
                self.job(model, "plan", "--plan", str(plan))
            if self.arguments.repeat:
                self.job(model, "default")

    def compare(self) -> None:
        """One line a job, and by how much the losses of a model's jobs differ at most."""
        path = self.out / "results.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        for line in lines:
            others = [each for each in lines if each["model"] == line["model"] and each is not line]
            apart = [max(abs(a - b) for a, b in zip(line["losses"], each["losses"])) for each in others]
            print(
                f"{line['model']:>14} {line['mode']:>8}: step {line['step_ms']:8.2f} ms "
                f"({line['least_step_ms']:.2f} to {line['most_step_ms']:.2f}), allocated "
                f"{line['peak_allocated_bytes'] / 2**30:.2f} GiB, reserved {line['peak_reserved_bytes'] / 2**30:.2f} GiB, "
                f"losses {line['losses'][0]} .. {line['losses'][-1]}, from other jobs' at most {max(apart, default=0):.6f}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(Bridge(parse()).all())
