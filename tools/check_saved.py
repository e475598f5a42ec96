#!/usr/bin/env python3
"""Whether what a search saves is what it says.

    tools/check_saved.py BIN [--cluster NAME] [--schedules N] WORKLOAD...

For each workload (traces/WORKLOAD) searches with dc-sim of the folder BIN, simulates the saved plan, each
plan of the saved front and the saved DeepSpeed JSON, and compares step time, memory and outcome with those
that the search printed, to the nanosecond and byte. Without a WORKLOAD: all. Prints a table; exits 1 where
something differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ("outcome", "step_time_ns", "peak_reserved_bytes", "peak_allocated_bytes")


def run(*command):
    return subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)


def figures(result):
    return tuple(result[key] for key in FIGURES)


def text(result):
    if result["outcome"] != "completed":
        return result["outcome"].replace("_", " ")
    return f"{result['step_time_ns'] / 1e6:.3f} ms, {result['peak_reserved_bytes'] / 2**30:.2f} GiB"


def simulated(program, workload, cluster, plan):
    done = run(program, "simulate", workload, "--cluster", cluster, "--plan", str(plan), "--json", "-")
    if done.returncode not in (0, 1):
        sys.exit(f"check_saved.py: simulate {workload} --plan {plan.name}: {done.stderr}")
    return json.loads(done.stdout)


def check(program, workload, cluster, schedules):
    """A row of the table, and what differs."""
    with tempfile.TemporaryDirectory(prefix="dcsim-") as folder:
        out = pathlib.Path(folder)
        done = run(program, "search", workload, "--cluster", cluster, "--schedules", str(schedules),
                   "--json", str(out / "search.json"), "--save-plan", str(out / "plan.json"),
                   "--save-front", str(out / "front"), "--save-deepspeed", str(out / "deepspeed.json"))
        if done.returncode == 1:
            return ["nothing fits", "", "", "", "0"], []
        if done.returncode != 0:
            sys.exit(f"check_saved.py: search {workload}: {done.stderr}")
        search = json.loads((out / "search.json").read_text())
        said = {"plan.json": search["best"]["result"], "deepspeed.json": search["deepspeed"]}
        said |= {f"front/front-{i:02}.json": member for i, member in enumerate(search["front"])}
        faults = []
        for name, printed in said.items():
            again = simulated(program, workload, cluster, out / name)
            if figures(again) != figures(printed):
                faults.append(f"{workload}: {name}: said {text(printed)}, simulates to {text(again)}")
        if figures(search["best"]["result"]) != figures(search["front"][0]):
            faults.append(f"{workload}: the best is not the first of the front")
        compared = {each["name"]: text(each["result"]) for each in search["baselines"]}
        eager = compared.pop("deepspeed-eager", "")  # no rival of compiled graphs
        return [*compared.values(), eager, text(search["best"]["result"]), text(search["deepspeed"]), str(len(said))], faults


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--cluster", default="h200-8")
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    options = parser.parse_intermixed_args()
    program = str(options.bin.resolve() / "dc-sim")
    workloads = options.workloads or sorted(path.parent.name for path in SOURCE.glob("traces/*/graph.json.xz"))
    print("| workload | DeepCompile | eager DeepSpeed | best | closest DeepSpeed JSON | files simulated again |")
    print("| --- | --- | --- | --- | --- | --- |")
    faults = []
    for name in workloads:
        cells, differ = check(program, f"traces/{name}", f"configs/clusters/{options.cluster}.yaml", options.schedules)
        print("|", " | ".join([name, *cells]), "|", flush=True)
        faults += differ
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
