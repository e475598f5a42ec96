"""The page of all measured steps (docs/lab/accuracy_cases.md): sums, orders of plans, and a line a step.

Rows are those of accuracy_step.py.
"""
import itertools

from accuracy_step import QUIET, SLOW

# Cells of the line of a step.
COLUMNS = 12
# Plans of a run from which on their order says something, and the difference in percent that a second run keeps.
ORDERED = 7
APART = 1.5


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


def most_lines(rows):
    """Whether steps reserve no more than the most that is predicted, by how their memory comes back."""
    lines = [
        "Reserved bytes at most: over orders of segments and, by `record_stream`, hosts 0.7 to 4 times as slow. Steps with a profile.",
        "",
        "| memory comes back | cases | no more | more, by 0.5 % at most | the others, furthest |",
        "| --- " * 5 + "|",
    ]
    for name in sorted({each["released"] for each in rows}):
        beyond = [each["beyond_most"] for each in rows if each["released"] == name and each["profiled"]]
        none = sum(each == 0 for each in beyond)
        few = within(beyond, 0.5) - none
        lines.append(f"| {name} | {len(beyond)} | {none} | {few} | {len(beyond) - none - few}, {max(beyond):.1f} % |")
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
    lines += quiet_lines(rows) + most_lines(rows) + order_lines(rows) + stop_lines(stops) + host_lines(rows)
    lines += ["| workload | cluster | plan | predicted | measured | error | roofline | host | spread | exposed | clock | memory |", "| --- " * COLUMNS + "|"]
    for each in rows:
        lines.append(
            f"| {each['workload']} | {each['cluster']} | {each['plan']} | {each['predicted']:.2f} | {each['measured']:.2f} "
            f"| {each['error']:+.1f} | {each['roofline']:+.1f} | {host_text(each)} | {each['spread']:.1f} "
            f"| {exposed_text(each)} | {clock_text(each)} | {memory_text(each)} |"
        )
    return "\n".join(lines) + "\n"
