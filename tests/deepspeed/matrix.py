#!/usr/bin/env python3
"""Every feature inside DeepSpeed on two CPU ranks: plans found and drawn, beside ZeRO-3 without DeepCompile.

    PYTHONPATH=FOLDER python3 tests/deepspeed/matrix.py [--drawn 3] [--only MODEL ...] [--out tests/deepspeed/matrix.md]

FOLDER holds an installed DeepSpeed (tools/setup/deepspeed.sh); DCSIM_BIN names the folder of dc-sim. Each case records its
job, searches, and trains with the found plan and with drawn ones. A row says whether losses are those of ZeRO-3 (those of
DeepCompile under autocast, which casts gradients elsewhere), and whether what ran is the plan. Ends with 1 where a row fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import conftest  # noqa: F401  (puts the folders of the modules below into the path)

import plan_checks
from launching import run_jobs, search
from random_plans import random_plan

# Relative difference of losses: with accumulation, the stand-in adds micro-steps in another order than ZeRO-3; Inductor's
# kernels and repeated forwards round in other places than eager ones.
EXACT, ROUNDED = 0.0, 2e-5


@dataclass
class Case:
    """One feature. recorded   the model whose recording serves, where the job itself cannot be recorded"""

    name: str
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    tolerance: float = EXACT
    recorded: str = ""
    beside: str = "eager"
    one_graph: bool = True


CASES = [
    Case("own code, tied embedding", "own"),
    Case("transformers' Llama, tied", "llama"),
    Case("frozen parameters", "frozen"),
    Case("LoRA", "lora"),
    Case("activation checkpointing", "checkpoint", tolerance=ROUNDED),
    Case("dropout", "dropout", recorded="own"),
    Case("graph break", "breaks", recorded="own", one_graph=False),
    Case("accumulation, 3 micro-steps", "own", {"accumulation": 3}, ROUNDED),
    Case("autocast to bfloat16", "own", {"autocast": True}, EXACT, beside="own"),
    Case("Inductor", "own", {"backend": "inductor"}, ROUNDED),
    Case("Inductor, autocast", "own", {"backend": "inductor", "autocast": True}, ROUNDED, beside="own"),
]


def close(a: list[float], b: list[float], tolerance: float) -> bool:
    return len(a) == len(b) and all(abs(x - y) <= tolerance * abs(y) for x, y in zip(a, b))


class Matrix:
    def __init__(self, drawn: int, folder: Path) -> None:
        self.drawn = drawn
        self.folder = folder
        self.rows: list[str] = []
        self.failed = 0

    def run(self, case: Case) -> None:
        started = time.monotonic()
        folder = self.folder / case.name.replace(" ", "-").replace(",", "").replace("'", "")
        folder.mkdir()
        recorded = {key: value for key, value in case.options.items() if key != "accumulation"}
        first = run_jobs(
            [
                {"name": "beside", "model": case.model, "mode": case.beside, **case.options},
                {
                    "name": "record",
                    "model": case.recorded or case.model,
                    "mode": "record",
                    "folder": str(folder / "job"),
                    "steps": 1,
                    **recorded,
                },
            ],
            folder,
        )
        found = search(folder / "job", folder / "found.json")
        plans = {"found": found, **{f"drawn {seed}": random_plan(found, seed) for seed in range(self.drawn)}}
        for name, plan in plans.items():
            (folder / f"{name}.json").write_text(json.dumps(plan))
        job = {"model": case.model, "mode": "plan", **case.options}
        results = run_jobs([{**job, "name": name, "plan": str(folder / f"{name}.json")} for name in plans], folder)
        for name, plan in plans.items():
            self.row(case, name, plan, results[name], first["beside"])
        print(f"{case.name}: {time.monotonic() - started:.0f} s", flush=True)

    def row(self, case: Case, name: str, plan: dict[str, Any], result: dict[str, Any], beside: dict[str, Any]) -> None:
        problems = []
        if "error" in result or "error" in beside:
            problems.append(str(result.get("message") or beside.get("message"))[:120])
        else:
            if not close(result["losses"], beside["losses"], case.tolerance):
                problems.append(f"losses {result['losses']}, not {beside['losses']}")
            if not result["report"]["applied"]:
                problems.append(result["report"]["reason"][:120])
            if case.one_graph:
                kept = frozenset(plan["persistent"]) if case.options.get("accumulation", 1) > 1 else frozenset()
                problems += plan_checks.differences(plan, result["log"], kept)[:1]
            if case.options.get("backend") == "inductor" and not result["report"]["order_kept"]:
                problems.append("Inductor changed the order")
        launches = sum(graph["launches"] for graph in (result.get("report") or {}).get("graphs", []))
        kept = len(plan["persistent"])
        self.failed += bool(problems)
        self.rows.append(f"| {case.name} | {name} | {launches} | {kept} | {'; '.join(problems) or 'yes'} |")
        print(self.rows[-1], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drawn", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    import deepspeed
    import torch

    with tempfile.TemporaryDirectory(prefix="dcsim-") as folder:
        matrix = Matrix(arguments.drawn, Path(folder))
        for case in CASES:
            if not arguments.only or case.model in arguments.only:
                matrix.run(case)
    text = (
        f"DeepSpeed {deepspeed.__version__}, torch {torch.__version__}, {time.strftime('%Y-%m-%d', time.gmtime())}, "
        f"2 CPU ranks, 3 steps: `{' '.join(['matrix.py', *sys.argv[1:]])}`\n\n"
        "| job | plan | launches | kept | losses and launches as they should be |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(matrix.rows)
        + "\n"
    )
    if arguments.out:
        arguments.out.write_text(text)
    return 1 if matrix.failed else 0


if __name__ == "__main__":
    sys.exit(main())
