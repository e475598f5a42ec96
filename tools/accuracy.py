#!/usr/bin/env python3
"""The table of all measured steps beside their predictions (docs/accuracy_cases.md).

    tools/accuracy.py BIN            predicts every case under traces/*/measured again and writes the table
    tools/accuracy.py BIN --check    fails where an error is larger than the table says, or memory no longer the same

BIN is the folder of the built programs (build/dev/bin). Results of `dc-run` lie in traces/WORKLOAD/measured/CLUSTER;
configs/clusters/CLUSTER.yaml predicts them.
"""
import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TABLE = SOURCE / "docs" / "accuracy_cases.md"
# Percentage points by which an error may grow: what rounding in the table hides.
SLACK = 0.1


def cases():
    """Result files by cluster, in the order of their names."""
    found = {}
    for path in sorted(SOURCE.glob("traces/*/measured/*/*.json")):
        found.setdefault(path.parent.name, []).append(str(path.relative_to(SOURCE)))
    return found


def compare(program, cluster, files):
    command = [program, "compare", *files, "--cluster", f"configs/clusters/{cluster}.yaml", "--json", "-"]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"accuracy.py: {' '.join(command[:2])} failed: {done.stderr}")
    return json.loads(done.stdout)["comparisons"]


def row(pair):
    """Name, predicted and measured ms, error in percent, spread of the repeats, memory errors in percent."""
    predicted, measured = pair["predicted"], pair["measured"]
    times = sorted(measured["step_times_ns"])
    workload, cluster, name = pair["file"].split("/")[1], pair["file"].split("/")[3], pair["file"].split("/")[4]
    error = lambda key: 100 * (predicted[key] / measured[key] - 1)  # noqa: E731
    return {
        "workload": workload,
        "cluster": cluster,
        "plan": name.removesuffix(".json"),
        "predicted": predicted["step_time_ns"] / 1e6,
        "measured": measured["step_time_ns"] / 1e6,
        "error": error("step_time_ns"),
        "inside": abs(predicted["step_time_ns"] - measured["step_time_ns"]) <= predicted["bound_ns"],
        "spread": 100 * (times[-1] - times[0]) / measured["step_time_ns"],
        "allocated": error("peak_allocated_bytes"),
        "reserved": error("peak_reserved_bytes"),
        "same": all(predicted[key] == measured[key] for key in ("peak_allocated_bytes", "peak_reserved_bytes")),
    }


def memory_text(each):
    return "same byte" if each["same"] else f"{each['allocated']:+.1f}, {each['reserved']:+.1f}"


def table_text(rows):
    lines = [
        "# Measured steps, and what is predicted for them",
        "",
        "Made by `tools/accuracy.py`; a test predicts every row again and fails when an error grows. ms: median step, maximum over ranks.",
        "Inside: the measured step is within the prediction's bound (nine of ten should be).",
        "Error: predicted against measured, %. Spread: longest less shortest repeat, % of the median. Memory: errors of peak allocated and reserved, %.",
        "",
    ]
    for key in ("workload", "cluster"):
        lines += [f"| {key} | cases | mean error | largest | inside | memory the same |", "| --- | --- | --- | --- | --- | --- |"]
        for value in sorted({each[key] for each in rows}) + ["all"]:
            part = [each for each in rows if value in (each[key], "all")]
            worst = max(part, key=lambda each: abs(each["error"]))["error"]
            mean = sum(abs(each["error"]) for each in part) / len(part)
            same = sum(each["same"] for each in part)
            inside = sum(each["inside"] for each in part)
            lines.append(f"| {value} | {len(part)} | {mean:.1f} % | {worst:+.1f} % | {inside} | {same} |")
        lines.append("")
    lines += ["| workload | cluster | plan | predicted | measured | error | spread | memory |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for each in rows:
        lines.append(
            f"| {each['workload']} | {each['cluster']} | {each['plan']} | {each['predicted']:.2f} | {each['measured']:.2f} "
            f"| {each['error']:+.1f} | {each['spread']:.1f} | {memory_text(each)} |"
        )
    return "\n".join(lines) + "\n"


def committed():
    """Error in percent and memory text by case, from the table."""
    known = {}
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 8 and cells[0] not in ("workload", "---"):
            known[tuple(cells[:3])] = (float(cells[5]), cells[7])
    return known


def check(rows):
    known, faults = committed(), []
    for each in rows:
        case = (each["workload"], each["cluster"], each["plan"])
        name = "/".join(case)
        if case not in known:
            faults.append(f"{name}: not in {TABLE.name}; run tools/accuracy.py")
            continue
        error, memory = known[case]
        if abs(each["error"]) > abs(error) + SLACK:
            faults.append(f"{name}: step time error {each['error']:+.1f} %, was {error:+.1f} %")
        if memory == "same byte" and not each["same"]:
            faults.append(f"{name}: memory was the same to the byte, now off by {memory_text(each)} %")
    return faults


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    program = str(pathlib.Path(sys.argv[1]).resolve() / "dc-sim")
    rows = [row(pair) for cluster, files in cases().items() for pair in compare(program, cluster, files)]
    rows.sort(key=lambda each: (each["workload"], each["cluster"], each["plan"]))
    if sys.argv[2:]:
        faults = check(rows)
        print("\n".join(faults) or f"{len(rows)} cases: no error has grown")
        return 1 if faults else 0
    TABLE.write_text(table_text(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
