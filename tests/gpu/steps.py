#!/usr/bin/env python3
"""Losses and peaks of steps on GPUs: every kind of schedule trains like PyTorch's DDP, and needs the same bytes each time.

    tests/gpu/steps.py DC_RUN [--gpus 2] [-o losses.json]      from the source folder

- mlp-8x4096: the same bits in every schedule whose sums have the same order as ZeRO-1's. With four micro-steps ZeRO-2 and 3
  add the ranks' gradients before those of the micro-steps; then, and against DDP, the bound below holds.
- llama-3.2-1b: its embedding and attention add with atomics in the backward, so two runs of one plan differ, too.
- A small network under autocast: the same bits whether its casts are fused into gathers or not.
- Event-ordered schedules: the peak of allocated bytes is the same in every step, on every rank and in a second run, the peak
  of reserved bytes on every rank and in a second run, but for optimizer states that leave: their memory is free once the copy
  has ended.

Bound: gradients are rounded to bfloat16 (2^-9), so a weight may move by 2^-9 of the learning rate's step more or less; the
losses of five steps then agree to a few 1e-5 of the first one. 2e-4 leaves room for the atomics.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BOUND = 2e-4
STEPS = 5
SHAPES = {"mlp-8x4096": [], "llama-3.2-1b": ["--batch", "4", "--seq", "2048"]}
# Keys of a plan spec behind each plan's name. EXACT ones add in ZeRO-1's order with one micro-step.
EXACT: dict[str, dict[str, Any]] = {
    "zero1": {"stage": 1},
    "zero2": {"stage": 2},
    "zero2-single-buffer": {"stage": 2, "double_buffer": False},
    "zero2-reduce-scatter": {"stage": 2, "reduce_collective": "reduce_scatter"},
    "zero2-small-bucket": {"stage": 2, "reduce_bucket": "1e7 elements"},
    "zero3": {"stage": 3},
    "zero3-ahead": {"stage": 3, "gather_ahead": 8},
    "zero3-record-stream": {"stage": 3, "gather_ahead": 8, "release": "record_stream"},
    "zero3-two-communicators": {"stage": 3, "gather_ahead": 8, "communicators": 2},
    "zero3-kept": {"stage": 3, "keep_gathered": "all"},
    "zero3-copy-engine": {"stage": 3, "gather_ahead": 4, "gather_engine": "copy_engine"},
    "zero3-offload": {"stage": 3, "offload_optimizer": "all"},
    "zero1-offload": {"stage": 1, "offload_optimizer": "all"},
    "zero3-offload-parameters": {"stage": 3, "offload_parameters": True},
    "zero3-offload-activations": {"policy": "deepcompile-0.19.8", "stage": 3, "passes": ["zero3_compile", "offload_activation_floor"]},
    "zero3-eager": {"policy": "deepspeed-eager", "stage": 3},
    "zero3-expandable": {"stage": 3, "gather_ahead": 8, "allocator": "expandable_segments"},
    "zero3-copy-engine-expandable": {"stage": 3, "gather_ahead": 4, "gather_engine": "copy_engine", "allocator": "expandable_segments"},
}
AUTOCAST = "tests/data/training/autocast"
FUSED: dict[str, dict[str, Any]] = {
    "zero3": {"stage": 3},
    "zero3-fused": {"stage": 3, "fuse_casts": True},
    "zero3-fused-ahead": {"stage": 3, "fuse_casts": True, "gather_ahead": 3, "release": "record_stream"},
    "zero3-fused-kept": {"stage": 3, "fuse_casts": True, "keep_gathered": "all"},
    "zero3-fused-deepcompile": {"policy": "deepcompile-0.19.8", "stage": 3, "passes": ["zero3_compile"]},
}
WITHIN = {"zero1-foreach": {"stage": 1, "optimizer": "foreach"}}
REPEATED = ("zero1", "zero3-ahead")  # run twice
# Memory depends on how far the GPU has come: of blocks that are free behind an event.
NOT_ORDERED = ("zero3-record-stream", "zero3-eager", "zero3-offload-activations", "zero3-offload-parameters")
FREE_BEHIND_COPIES = ("zero3-offload", "zero1-offload")  # reserved bytes only

failed = False


def verdict(name: str, good: bool, detail: str) -> None:
    global failed
    failed = failed or not good
    print(f"{'ok     ' if good else 'FAILED '} {name}: {detail}", flush=True)


def measure(arguments: argparse.Namespace, workload: str, accumulation: int, specs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Results of dc-run step by plan name; all plans in one start."""
    with tempfile.TemporaryDirectory() as folder:
        plans = []
        for name, spec in specs.items():
            path = Path(folder) / f"{name}.yaml"
            keys = {"format": "dc-plan-spec/1", "policy": "plain-1", **spec, "gradient_accumulation_steps": accumulation}
            path.write_text("".join(f"{key}: {json.dumps(value).strip(chr(34))}\n" for key, value in keys.items()))
            plans += ["--plan", str(path)]
        out = Path(folder) / "out"
        out.mkdir()
        command = [arguments.dc_run, "step", workload if "/" in workload else f"traces/{workload}", *plans, "--gpus", str(arguments.gpus), "--warmup", str(STEPS),
                   "--steps", "3", "--no-trace", "--out", str(out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
        if done.returncode != 0:
            verdict(f"{workload}, accumulation {accumulation}", False, done.stderr.strip().splitlines()[-1])
        files = {name: out / f"{Path(workload).name}-{name}-{arguments.gpus}.json" for name in specs}
        return {name: json.loads(path.read_text()) for name, path in files.items() if path.exists()}


def train_with_ddp(arguments: argparse.Namespace, workload: str, accumulation: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ddp.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(arguments.gpus),
                   "tools/oracles/train_with_peers.py", "ddp", workload, *SHAPES[workload], "--accumulation",
                   str(accumulation), "--warmup", "0", "--steps", str(STEPS), "-o", str(out)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/dcrecord/src")}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, env=environment)
        if done.returncode != 0:
            verdict(f"{workload}, DDP", False, (done.stderr.strip().splitlines() or ["no message"])[-1])
            return []
        return list(json.loads(out.read_text())["losses"])[:STEPS]


def distance(a: list[float], b: list[float]) -> float:
    """Of two lists of losses, as a share of the first; of 1 where it is less: such a loss is a mean of values of both signs."""
    return max(abs(x - y) for x, y in zip(a, b, strict=True)) / max(1.0, abs(b[0]))


def check_losses(case: str, results: dict[str, Any], ddp: list[float], exact: set[str], like: str = "zero1") -> None:
    first = results[like]["losses"]
    for name, result in results.items():
        if name in exact:
            verdict(f"{case}, {name}", result["losses"] == first, f"the losses of {like}, bit for bit")
        else:
            far = distance(result["losses"], first)
            verdict(f"{case}, {name}", far <= BOUND, f"{far:.1e} from zero1's losses")
    if ddp:
        far = distance(first, ddp)
        verdict(f"{case}, DDP", far <= BOUND, f"zero1 {far:.1e} from DDP's losses")


def check_peaks(case: str, results: dict[str, Any]) -> None:
    for name, result in results.items():
        if name in NOT_ORDERED:
            continue
        ranks = result["ranks"]
        allocated = {rank[key] for rank in ranks for key in ("peak_allocated_bytes", "least_peak_allocated_bytes")}
        reserved = {rank["peak_reserved_bytes"] for rank in ranks}
        again = results.get(f"{name}-again", result)
        same = all(again[key] == result[key] for key in ("peak_allocated_bytes", "peak_reserved_bytes"))
        detail = f"allocated {sorted(allocated)}, reserved {sorted(reserved)} B" + ("" if same else ", and others again")
        one = len(allocated) == 1 and (len(reserved) == 1 or name in FREE_BEHIND_COPIES)
        verdict(f"{case}, {name}, peaks", one and same, detail)


def check(arguments: argparse.Namespace, workload: str, accumulation: int, specs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    case = f"{workload}, {arguments.gpus} GPUs, accumulation {accumulation}"
    repeated = {f"{name}-again": specs[name] for name in REPEATED if name in specs}
    with ThreadPoolExecutor() as side:  # nothing is timed, and both fit on the GPUs
        trained = side.submit(train_with_ddp, arguments, workload, accumulation)
        results = measure(arguments, workload, accumulation, {**specs, **repeated})
        ddp = trained.result()
    if "zero1" in results:
        bits = workload == "mlp-8x4096"
        exact = {name for name in results if name.removesuffix("-again") in EXACT} if bits else set()
        if accumulation > 1:
            exact &= {name for name in exact if name.startswith("zero1")}
        check_losses(case, results, ddp, exact)
        check_peaks(case, results)
    losses = {name: result["losses"] for name, result in results.items() if not name.endswith("-again")}
    return {"workload": workload, "gpus": arguments.gpus, "gradient_accumulation_steps": accumulation, "ddp": ddp, "dc_run": losses}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dc_run")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--workload", action="append", choices=list(SHAPES), help="default: mlp-8x4096 and llama-3.2-1b")
    parser.add_argument("-o", "--out", help="file for all losses")
    arguments = parser.parse_args()
    some = {name: EXACT[name] for name in ("zero1", "zero2", "zero3", "zero3-ahead", "zero3-copy-engine", "zero3-offload",
                                          "zero3-offload-parameters", "zero3-offload-activations", "zero3-eager")}
    cases = []
    for workload in arguments.workload or ["mlp-8x4096", "llama-3.2-1b"]:
        for accumulation in (1, 4):
            specs = {**EXACT, **WITHIN} if workload == "mlp-8x4096" else some
            if workload != "mlp-8x4096" and accumulation > 1:
                specs = {name: spec for name, spec in some.items() if "-" not in name}
            cases.append(check(arguments, workload, accumulation, specs))
    fused = measure(arguments, AUTOCAST, 1, FUSED)
    if "zero3" in fused:
        check_losses(f"autocast, {arguments.gpus} GPUs", fused, [], set(fused), like="zero3")
    if arguments.out:
        Path(arguments.out).write_text(json.dumps({"cases": cases}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
