#!/usr/bin/env python3
"""The table of all measured steps beside their predictions (docs/lab/accuracy_cases.md).

    tools/accuracy.py BIN            predicts every case under traces/*/measured again and writes the table
    tools/accuracy.py BIN --check    fails where an error is larger than the table says, or memory no longer the same

BIN is the folder of the built programs (build/dev/bin). Results of `dc-run` lie in
traces/WORKLOAD/measured/CLUSTER.jsonl.xz (tools/measured.py); configs/clusters/CLUSTER.yaml predicts them.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

from accuracy_page import COLUMNS, memory_text, table_text
from accuracy_step import error_of, row, stop_row, stopped
from measured import SOURCE, cluster_of, packs

TABLE = SOURCE / "docs" / "lab" / "accuracy_cases.md"
# Percentage points by which an error may grow: what rounding in the table hides.
SLACK = 0.1
# Cases known to reserve more than in any order of segments that was tried (docs/lab/accuracy.md, Memory).
RESERVE_MORE = {("efficientnet-b4", "h200-1", "zero1")}


def cases():
    """Cluster and pack of results, in the order of the packs' names."""
    return [(cluster_of(pack), str(pack.relative_to(SOURCE))) for pack in packs()]


def compare(program, cluster, pack, *options):
    command = [program, "compare", pack, "--cluster", f"configs/clusters/{cluster}.yaml", "--json", "-", *options]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"accuracy.py: {' '.join(command[:2])} failed: {done.stderr}")
    return json.loads(done.stdout)["comparisons"]


def compare_all(program, measured, *options):
    """Comparisons of all cases on all cores, in an order that is always the same."""
    # Large packs first, so that cores are done at about the same time.
    parts = sorted(measured, key=lambda part: -(SOURCE / part[1]).stat().st_size)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as cores:
        done = cores.map(lambda part: compare(program, *part, *options), parts)
        return [pair for pairs in done for pair in pairs]


def committed_rows():
    """Cells of the table of cases."""
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.read_text().splitlines())
    return [cells for cells in rows if len(cells) == COLUMNS and cells[0] not in ("workload", "---")]


def committed():
    """Error in percent and memory text by case, from the table."""
    return {tuple(cells[:3]): (float(cells[5]), cells[-1]) for cells in committed_rows()}


def check(rows, stops):
    known = committed()
    faults = [f"{'/'.join(each[:3])}: predicted {each[3]}, measured {each[4]}" for each in stops if each[3] != each[4]]
    for each in rows:
        case = (each["workload"], each["cluster"], each["plan"])
        name = "/".join(case)
        if case not in known:
            faults.append(f"{name}: not in {TABLE.name}; run tools/accuracy.py")
            continue
        error, memory = known[case]
        if abs(each["error"]) > abs(error) + SLACK:
            faults.append(f"{name}: step time error {each['error']:+.1f} %, was {error:+.1f} %")
        if each["released"] == "event_ordered" and each["profiled"] and each["beyond_most"] > 0 and case not in RESERVE_MORE:
            faults.append(f"{name}: reserves more than in any order of segments that was tried")
        if memory == "same byte" and not each["same"]:
            faults.append(f"{name}: memory was the same to the byte, now off by {memory_text(each)} %")
    return faults


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    program = str(pathlib.Path(sys.argv[1]).resolve() / "dc-sim")
    measured = cases()
    checking = bool(sys.argv[2:])
    pairs = compare_all(program, measured, *(["--no-host"] if checking else []))
    rows = [row(pair) for pair in pairs if not stopped(pair)]
    stops = sorted(stop_row(pair) for pair in pairs if stopped(pair))
    if not checking:
        alone = compare_all(program, measured, "--no-profile", "--no-host")
        whole = [pair for pair, known in zip(alone, pairs, strict=True) if not stopped(known)]
        for each, pair in zip(rows, whole, strict=True):
            each["roofline"] = error_of(pair, "step_time_ns")
    rows.sort(key=lambda each: (each["workload"], each["cluster"], each["plan"]))
    if checking:
        faults = check(rows, stops)
        print("\n".join(faults) or f"{len(rows) + len(stops)} cases: no error has grown")
        return 1 if faults else 0
    TABLE.write_text(table_text(rows, stops))
    return 0


if __name__ == "__main__":
    sys.exit(main())
