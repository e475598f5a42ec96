#!/usr/bin/env python3
"""Memory limits hold: plans that dc-sim search reported as fitting run within their limit, set as the allocator's fraction.

    tests/gpu/limits.py DC_RUN [--gpus 2] [-o FOLDER]      from the source folder; FOLDER gets the results

- traces/*/plans/h200-GPUS/within-LIMITGiB.json.gz: completes without giving cache back, reserves the limit at most.
- The first of each workload again with 2 MiB less than it reserved: reserves no more than that (the allocator gives cached
  segments back, which counts as a retry only where it gives back all), or runs out of memory. Otherwise the limit was none.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30
MIB = 1 << 20


def total_memory() -> int:
    """Bytes of a GPU, of which the allocator takes its fraction."""
    code = "import torch; print(torch.cuda.get_device_properties(0).total_memory)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def step(arguments: argparse.Namespace, plan: Path, limit: int, total: int) -> dict[str, Any]:
    """The result of dc-run step where the allocator may reserve `limit` bytes; its last words where there is none."""
    # PyTorch rounds the product down; half a byte more gives the limit itself.
    fraction = (limit + 0.5) / total
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.dc_run, "step", str(plan.parents[2]), "--plan", str(plan), "--gpus", str(arguments.gpus),
                   "--warmup", "3", "--steps", "5", "--no-trace", "--out", folder]
        environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": f"per_process_memory_fraction:{fraction!r}"}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, env=environment)
        for path in Path(folder).glob("*.json"):
            return dict(json.loads(path.read_text()))
        return {"outcome": f"exit code {done.returncode}", "words": (done.stderr.strip().splitlines() or [""])[-1]}


def fits(result: dict[str, Any]) -> bool:
    return result["outcome"] == "completed" and result["allocator_retries"] == 0


def describe(result: dict[str, Any]) -> str:
    if result["outcome"] != "completed":
        return f"{result['outcome']} {result.get('words', '')}"
    return f"completed, {result['peak_reserved_bytes']} B reserved, cache given back {result['allocator_retries']} times"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dc_run")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("-o", "--out", type=Path, help="folder for results, as traces/*/measured has them")
    arguments = parser.parse_args()
    plans = sorted((ROOT / "traces").glob(f"*/plans/h200-{arguments.gpus}/within-*GiB.json.gz"))
    if not plans:
        sys.exit(f"limits.py: no plan within a limit for {arguments.gpus} GPUs")
    total = total_memory()
    failed = False
    tried = set()
    for plan in plans:
        workload = plan.parents[2].name
        name = plan.name.removesuffix(".json.gz")
        limit = int(float(re.fullmatch(r"within-(.*)GiB", name).group(1)) * GIB)
        result = step(arguments, plan, limit, total)
        good = fits(result) and result["peak_reserved_bytes"] <= limit
        failed |= not good
        print(f"{'ok     ' if good else 'FAILED '} {workload}, {name}: {limit} B allowed; {describe(result)}", flush=True)
        if good and arguments.out:
            kept = arguments.out / workload / "measured" / f"h200-{arguments.gpus}"
            kept.mkdir(parents=True, exist_ok=True)
            (kept / plan.name).write_bytes(gzip.compress(f"{json.dumps(result, indent=1)}\n".encode(), mtime=0))
        if good and workload not in tried:
            tried.add(workload)
            allowed = result["peak_reserved_bytes"] - 2 * MIB
            less = step(arguments, plan, allowed, total)
            held = less["outcome"] == "out_of_memory" or fits(less) and less["peak_reserved_bytes"] <= allowed
            failed |= not held
            print(f"{'ok     ' if held else 'FAILED '} {workload}, {name}, 2 MiB less than that: {describe(less)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
