#!/usr/bin/env python3
"""The table of all measured steps beside their predictions (docs/accuracy_cases.md).

    tools/accuracy.py BIN            predicts every case under traces/*/measured again and writes the table
    tools/accuracy.py BIN --check    fails where an error is larger than the table says, or memory no longer the same

BIN is the folder of the built programs (build/dev/bin). Results of `dc-run` lie in traces/WORKLOAD/measured/CLUSTER;
configs/clusters/CLUSTER.yaml predicts them.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TABLE = SOURCE / "docs" / "accuracy_cases.md"
# Percentage points by which an error may grow: what rounding in the table hides.
SLACK = 0.1
# Cases known to reserve more than in any order of segments that was tried (docs/accuracy.md, Memory).
RESERVE_MORE = {("efficientnet-b4", "h200-1", "zero1")}
# Of the table of cases.
COLUMNS = 12
# Plans of a run from which on their order says something, and the difference in percent that a second run keeps.
ORDERED = 7
APART = 1.5
# Traced steps that take so many percent longer than timed ones tell nothing about their exposed communication.
TRACED = 3
# Percent by which a measured host makes the predicted step longer, from which on it is told, and counts as slow.
TOLD = 1
SLOW = 3
# A stream that merely waits delays each kernel of compute by so many ns at most, where streams count as quiet.
QUIET = 200


def cases():
    """Result files by cluster, in the order of their names."""
    found = {}
    for path in sorted(SOURCE.glob("traces/*/measured/*/*.json.gz")):
        if not path.name.endswith(".timeline.json.gz"):
            found.setdefault(path.parent.name, []).append(str(path.relative_to(SOURCE)))
    return found


def compare(program, cluster, files, *options):
    command = [program, "compare", *files, "--cluster", f"configs/clusters/{cluster}.yaml", "--json", "-", *options]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"accuracy.py: {' '.join(command[:2])} failed: {done.stderr}")
    return json.loads(done.stdout)["comparisons"]


def compare_all(program, measured, *options):
    """Comparisons of all cases, in their order, on all cores."""
    # So few that cores are done at about the same time.
    at_once = 24
    parts = [(cluster, files[i : i + at_once]) for cluster, files in measured.items() for i in range(0, len(files), at_once)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as cores:
        done = cores.map(lambda part: compare(program, *part, *options), parts)
        return [pair for pairs in done for pair in pairs]


def error_of(pair, key):
    return 100 * (pair["predicted"][key] / pair["measured"][key] - 1)


def longer_traced(measured):
    """By how many percent the traced steps took longer than the timed ones, on the slowest rank; 0 where it is not known."""
    steps = [rank["traced_step_ns"] for rank in measured.get("ranks", []) if rank.get("traced_step_ns", 0) > 0]
    return 100 * (max(steps) / measured["step_time_ns"] - 1) if steps else 0


def exposed(pair):
    """Exposed communication, predicted less measured, in percent of the measured step (None where no step was traced, or
    the traced ones are known to be another step); whether that is within a tenth of it or a percent of the step. Gaps
    without any kernel count as the measurement counts them."""
    predicted, measured = pair["predicted"], pair["measured"]
    if measured["compute_ns"] == 0 or longer_traced(measured) > TRACED:
        return None, None
    step, of_step = measured["step_time_ns"], measured["exposed_communication_ns"]
    error = predicted["exposed_communication_ns"] + predicted["exposed_gaps_ns"] - predicted["exposed_starts_ns"] - of_step
    return 100 * error / step, abs(error) <= max(0.1 * of_step, 0.01 * step)


def clock_error(pair):
    """SM clock, predicted against that of the slowest GPU, in percent; None where it was not read."""
    clocks = [rank["sm_clock_mhz"] for rank in pair["measured"].get("ranks", []) if "sm_clock_mhz" in rank]
    predicted = pair["predicted"].get("sm_clock_mhz")
    return 100 * (predicted / min(clocks) - 1) if clocks and predicted else None


def case_of(pair):
    """Workload, cluster and plan of a result's file."""
    workload, _, cluster, name = pair["file"].split("/")[1:5]
    return workload, cluster, name.removesuffix(".json.gz")


def bounded(pair):
    """Reserved bytes stay below what any order of segments needs, where memory does not follow time and a profile tells what
    kernels need beside their results."""
    plan = pair["measured"]["plan"]
    offloads = plan.get("offload_parameters", False) or any(graph.get("state_moves") for graph in plan["graphs"])
    profiled = pair["predicted"]["sources"]["measured"] > 0.5
    return not profiled or plan["release"] != "event_ordered" or offloads or pair["measured"]["peak_reserved_bytes"] <= pair["predicted"]["peak_reserved_most_bytes"]


def longer_with_host(pair):
    """By how many percent the predicted step is longer with the host of the measured one; 0 where nobody read it."""
    if "with_host" not in pair:
        return 0
    return 100 * (pair["with_host"]["predicted"]["step_time_ns"] / pair["predicted"]["step_time_ns"] - 1)


def with_host(pair):
    """How many times as long as priced the host took in the measured step, and the error of the prediction with such a
    host; None where that hardly changes the prediction."""
    if abs(longer_with_host(pair)) < TOLD:
        return None
    return pair["with_host"]["slowdown"], error_of(pair | pair["with_host"], "step_time_ns")


def quiet(measured):
    """Whether the step ran on streams whose waits delay no kernel, of which older results do not tell."""
    delays = [rank.get("waiting_ns") for rank in measured.get("ranks", [])]
    return bool(delays) and all(each is not None and max(each.values()) <= QUIET for each in delays)


def rivals_of(measured):
    """What steps of one workload share that ran in the same go and do the same work; None of a step alone."""
    words = measured["command"].split()
    if "--suite" not in words[-2:]:
        return None
    steps = measured["plan"]["gradient_accumulation_steps"]
    return pathlib.Path(words[-1]).stem + (f", accumulation {steps}" if steps > 1 else "")


def stopped(pair):
    """Whether the schedule did not complete, predicted or measured."""
    return any(pair[side]["outcome"] != "completed" for side in ("predicted", "measured"))


def stop_text(result):
    """What came of a schedule: "out of memory in clear-gradients"."""
    if result["outcome"] != "completed":
        task = result["stop"]["task"].removeprefix("rank 0, ").split(": CUDA out of memory")[0]
        return f"{result['outcome'].replace('_', ' ')} in {task}"
    return "completed"


def stop_row(pair):
    """Case, and what came of it: predicted and measured."""
    return (*case_of(pair), stop_text(pair["predicted"]), stop_text(pair["measured"]))


def row(pair):
    """Name, predicted and measured ms, error in percent, spread of the repeats, memory errors in percent."""
    predicted, measured = pair["predicted"], pair["measured"]
    times = sorted(measured["step_times_ns"])
    exposed_error, exposed_near = exposed(pair)
    workload, cluster, plan = case_of(pair)
    return {
        "workload": workload,
        "cluster": cluster,
        "plan": plan,
        "rivals": rivals_of(measured),
        "predicted": predicted["step_time_ns"] / 1e6,
        "measured": measured["step_time_ns"] / 1e6,
        "error": error_of(pair, "step_time_ns"),
        "inside": abs(predicted["step_time_ns"] - measured["step_time_ns"]) <= predicted["bound_ns"],
        "spread": 100 * (times[-1] - times[0]) / measured["step_time_ns"],
        "allocated": error_of(pair, "peak_allocated_bytes"),
        "reserved": error_of(pair, "peak_reserved_bytes"),
        "exposed": exposed_error,
        "exposed_near": exposed_near,
        "clock": clock_error(pair),
        "host": with_host(pair),
        "slow": longer_with_host(pair) >= SLOW,
        "bounded": bounded(pair),
        "quiet": quiet(measured),
        "ordered": measured["plan"]["release"] == "event_ordered",
        "same": all(predicted[key] == measured[key] for key in ("peak_allocated_bytes", "peak_reserved_bytes")),
    }


def summary(errors):
    """The largest error with its sign, and the mean of all without."""
    return max(errors, key=abs), sum(map(abs, errors)) / len(errors)


def tau(rows, apart):
    """Kendall's tau between predicted and measured order, of the pairs of steps whose measured times differ by more
    than `apart` percent, and the number of these pairs; None where there are none."""
    signs = [
        1 if (a["predicted"] - b["predicted"]) * (a["measured"] - b["measured"]) > 0 else -1
        for a, b in itertools.combinations(rows, 2)
        if abs(a["measured"] / b["measured"] - 1) > apart / 100
    ]
    return (sum(signs) / len(signs) if signs else None), len(signs)


def once_each(runs):
    """The same with what a suite ran again ("zero3-again" beside "zero3") as a run of its own."""
    split = {}
    for (workload, cluster, name), part in runs.items():
        plans = {each["plan"] for each in part}
        for each in part:
            twice = each["plan"].endswith("-again") and each["plan"].removesuffix("-again") in plans
            split.setdefault((workload, cluster, name + (", again" if twice else "")), []).append(each)
    return split


def order_lines(rows):
    """How well the order of plans that were measured in one go is predicted."""
    lines = [
        f"Order of the plans of one run: Kendall's tau between predicted and measured times, of all pairs and of those more than {APART} % apart; "
        "chosen: what the plan predicted fastest takes longer than the fastest measured.",
        "",
        "| workload | cluster | run | plans | tau | pairs apart | their tau | chosen |",
        "| --- " * 8 + "|",
    ]
    runs = {}
    for each in rows:
        if each["rivals"]:
            runs.setdefault((each["workload"], each["cluster"], each["rivals"]), []).append(each)
    for key, part in sorted(once_each(runs).items()):
        if len(part) >= ORDERED:
            far, pairs = tau(part, APART)
            of_far = "" if far is None else f"{far:.2f}"
            chosen = min(part, key=lambda each: each["predicted"])["measured"]
            fastest = min(each["measured"] for each in part)
            lines.append(f"| {' | '.join(key)} | {len(part)} | {tau(part, 0)[0]:.2f} | {pairs} | {of_far} | {100 * (chosen / fastest - 1):.1f} % |")
    return [*lines, ""]


def memory_text(each):
    return "same byte" if each["same"] else f"{each['allocated']:+.1f}, {each['reserved']:+.1f}"


def exposed_text(each):
    return "" if each["exposed"] is None else f"{each['exposed']:+.1f}"


def host_text(each):
    return "" if each["host"] is None else f"{each['host'][0]:.1f}x {each['host'][1]:+.1f}"


def clock_text(each):
    return "" if each["clock"] is None else f"{each['clock']:+.1f}"


def stop_lines(stops):
    """Steps that ran out of memory, or were predicted to."""
    lines = ["Steps that did not complete, or were predicted not to:", "", "| workload | cluster | plan | predicted | measured |", "| --- " * 5 + "|"]
    return [*lines, *(f"| {' | '.join(each)} |" for each in stops), ""]


def within(errors, percent):
    return sum(abs(error) <= percent for error in errors)


def by_cluster(rows):
    """The steps of each cluster, then all of them."""
    names = sorted({each["cluster"] for each in rows})
    return [*((f"on {name}", [each for each in rows if each["cluster"] == name]) for name in names), ("all", rows)]


def step_cells(rows):
    """Cells of those whose hosts kept up: cases, mean error, largest, within 5 %, inside the bound."""
    steady = [each for each in rows if not each["slow"]]
    errors = [each["error"] for each in steady]
    worst, mean = summary(errors)
    return f"{len(steady)} | {mean:.1f} % | {worst:+.1f} % | {within(errors, 5)} | {sum(each['inside'] for each in steady)}"


def host_lines(rows):
    """Steps whose hosts were read to be slow, as predicted and with a host of that pace, and all others."""
    lines = [
        f"Slow hosts: those of which it was read that with their pace the predicted step is {SLOW} % longer or more.",
        "",
        "| steps | cases | mean error | largest | within 5 % | inside |",
        "| --- " * 6 + "|",
    ]
    lines += [f"| {name} | {step_cells(part)} |" for name, part in by_cluster(rows)]
    slow = [each for each in rows if each["slow"]]
    for name, errors in (("with a slow host", [each["error"] for each in slow]), ("the same, predicted with that host", [each["host"][1] for each in slow])):
        worst, mean = summary(errors)
        lines.append(f"| {name} | {len(slow)} | {mean:.1f} % | {worst:+.1f} % | {within(errors, 5)} | |")
    return [*lines, ""]


def quiet_lines(rows):
    """What is asked of predictions, of steps on quiet streams."""
    lines = [
        f"Quiet streams: no waiting stream delays a kernel of compute by more than {QUIET} ns. Step times of those whose hosts kept up. Reserved: of all; exact: allocated and reserved of those that release in the order of events.",
        "",
        "| steps | cases | mean error | largest | within 5 % | inside | exposed near | allocated within 0.5 % | reserved within 1 % | exact |",
        "| --- " * 10 + "|",
    ]
    for name, part in by_cluster([each for each in rows if each["quiet"]]):
        traced = [each for each in part if each["exposed"] is not None]
        ordered = [each for each in part if each["ordered"]]
        counts = [
            f"{sum(each['exposed_near'] for each in traced)} of {len(traced)}",
            f"{within([each['allocated'] for each in part], 0.5)} of {len(part)}",
            f"{within([each['reserved'] for each in part], 1)} of {len(part)}",
            f"{sum(each['same'] for each in ordered)} of {len(ordered)}",
        ]
        lines.append(f"| {name} | {step_cells(part)} | {' | '.join(counts)} |")
    return [*lines, ""]


def table_text(rows, stops):
    lines = [
        "# Measured steps, and what is predicted for them",
        "",
        "Made by `tools/accuracy.py`; a test predicts every row again and fails when an error grows. ms: median step, maximum over ranks.",
        "Inside: the measured step is within the prediction's bound (nine of ten should be).",
        "Error: predicted against measured, %. Roofline: the same without the workload's profile (`--no-profile`), ops priced by the roofline. Spread: longest less shortest repeat, % of the median. Memory: errors of peak allocated and reserved, %.",
        "Exposed: exposed communication, predicted less measured, % of the step; near: within a tenth of it or a percent of the step; nothing where traced steps took more than 3 % longer than timed ones. Clock: predicted against the slowest GPU's, %, where it was read. Host: how many times as long as priced it took in the measured step, where that changes the prediction by a percent or more, and the error with such a host.",
        "",
    ]
    for key in ("workload", "cluster"):
        lines += [f"| {key} | cases | mean error | largest | inside | memory the same | exposed near | clock, mean error | roofline, mean error | largest |", "| --- " * 10 + "|"]
        for value in sorted({each[key] for each in rows}) + ["all"]:
            part = [each for each in rows if value in (each[key], "all")]
            worst, mean = summary([each["error"] for each in part])
            worst_roofline, mean_roofline = summary([each["roofline"] for each in part])
            same = sum(each["same"] for each in part)
            inside = sum(each["inside"] for each in part)
            traced = [each for each in part if each["exposed"] is not None]
            near = f"{sum(each['exposed_near'] for each in traced)} of {len(traced)}"
            clocks = [abs(each["clock"]) for each in part if each["clock"] is not None]
            clock = f"{sum(clocks) / len(clocks):.1f} % of {len(clocks)}" if clocks else ""
            lines.append(
                f"| {value} | {len(part)} | {mean:.1f} % | {worst:+.1f} % | {inside} | {same} | {near} | {clock} "
                f"| {mean_roofline:.1f} % | {worst_roofline:+.1f} % |"
            )
        lines.append("")
    lines += quiet_lines(rows) + order_lines(rows) + stop_lines(stops) + host_lines(rows)
    lines += ["| workload | cluster | plan | predicted | measured | error | roofline | host | spread | exposed | clock | memory |", "| --- " * COLUMNS + "|"]
    for each in rows:
        lines.append(
            f"| {each['workload']} | {each['cluster']} | {each['plan']} | {each['predicted']:.2f} | {each['measured']:.2f} "
            f"| {each['error']:+.1f} | {each['roofline']:+.1f} | {host_text(each)} | {each['spread']:.1f} "
            f"| {exposed_text(each)} | {clock_text(each)} | {memory_text(each)} |"
        )
    return "\n".join(lines) + "\n"


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
        if not each["bounded"] and case not in RESERVE_MORE:
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
