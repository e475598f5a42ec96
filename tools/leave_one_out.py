#!/usr/bin/env python3
"""What predictions without a profile are worth for a workload that gave them no number (docs/lab/leave_one_out.md).

    tools/leave_one_out.py BIN           writes the page
    tools/leave_one_out.py BIN --check   fails where the page says something else

Each workload is held out once. Its profile is not used (`--no-profile`), and neither are the constants of
kernels that were read from it. tools/leave_one_out.json names, for each part of the GPU file's `kernels`, the
workloads that it was read from, and those that a law was compared with while it was written, which count as if they
had given it a number:

  - a workload that gave no constant: its steps as they are predicted without a profile today (the column
    "roofline" of docs/lab/accuracy_cases.md);
  - a workload that gave some: what was predicted and committed before any op of it ran
    (docs/lab/unseen_models.md);
  - one that gave some and was never predicted before: left out of the sums, and named.

Steps whose host was slow tell nothing of kernels and are left out. BIN holds dc-sim, which says how wide the
bound of each workload's step is for an error of the roofline.
"""
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PAGE = SOURCE / "docs" / "lab" / "leave_one_out.md"
TEACHERS = SOURCE / "tools" / "leave_one_out.json"
# By which a measured host makes the predicted step longer where it counts as slow, as in accuracy_step.py.
SLOW = 1.03
INSIDE = 0.9
# Sections of docs/lab/unseen_models.md whose models had run elsewhere, on an H200 or on one GPU.
KNEW_THEM = {"Another kind of GPU", "Two H100s", "Ten of them on two GPUs", "Eight GPUs"}
NUMBER = r"([\d,]+(?:\.\d+)?)"


def workloads():
    return sorted((path.parent.name for path in SOURCE.glob("traces/*/graph.json.xz")), key=len, reverse=True)


def teachers():
    """Workloads from which constants of kernels were read, or with which their laws were compared."""
    told = json.loads(TEACHERS.read_text())
    names = {name for law in told["read_from"].values() for name in law} | set(told["compared_with"])
    if unknown := sorted(names - set(workloads())):
        sys.exit(f"{TEACHERS.name}: no such workload in traces: {', '.join(unknown)}")
    return names


def rows(page):
    """Cells of the lines of all tables of a page, with the header of their table and the heading above it."""
    header, heading = [], ""
    for line in (SOURCE / "docs" / "lab" / page).read_text().splitlines():
        heading = line.strip("# ") if line.startswith("#") else heading
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            header = []
        elif not header:
            header = cells
        elif not cells[0].startswith("---"):
            yield heading, header, cells


def value(text):
    return float(text.replace(",", ""))


def today():
    """Errors without a profile, in percent, of steps whose host was not slow: by workload."""
    found = {}
    for _, header, cells in rows("accuracy_cases.md"):
        if header[:2] != ["workload", "cluster"] or "roofline" not in header or not cells[header.index("roofline")]:
            continue
        case = dict(zip(header, cells))
        host = re.fullmatch(r"[\d.]+x ([+-][\d.]+)", case["host"])
        predicted = value(case["predicted"]) / value(case["measured"])
        if host is None or (1 + float(host[1]) / 100) / predicted < SLOW:
            found.setdefault(case["workload"], []).append(float(case["roofline"]))
    return found


def before():
    """Errors in percent and half-widths of bounds, None where the page has none, of what was predicted without a
    profile before any op of a workload ran: by workload. Only the first table of a workload counts: later ones
    know its profile."""
    found, header_of = {}, {}
    for heading, header, cells in rows("unseen_models.md"):
        if heading in KNEW_THEM:
            continue
        name = cells[0].split(",")[0].strip()
        if name not in workloads():
            continue
        key = tuple(header)
        if header_of.setdefault(name, key) != key:
            continue
        steps = []
        if "before" in header and "measured" in header:
            text = cells[header.index("before")]
            predicted = re.match(rf"{NUMBER}(?: ± {NUMBER})?$", text)
            measured = re.match(rf"{NUMBER}$", cells[header.index("measured")])
            if predicted and measured:
                steps.append((value(predicted[1]), value(measured[1]), predicted[2]))
        else:
            for cell in cells[1:]:
                pair = re.match(rf"{NUMBER}, {NUMBER}$", cell)  # a dagger marks a slow host
                if pair:
                    steps.append((value(pair[1]), value(pair[2]), None))
        for predicted, measured, width in steps:
            bound = 100 * value(width) / measured if width else None
            found.setdefault(name, []).append((100 * (predicted / measured - 1), bound))
    return found


def bounds(program, name):
    """Half-width of the bound without the roofline's error, in percent of the step, and what an error of 1 adds:
    of a plain ZeRO-1 step on one GPU."""
    widths = []
    for error in ("0", "0.1"):
        done = subprocess.run(
            [program, "simulate", f"traces/{name}", "--cluster", "configs/clusters/h200-1.yaml", "--plan", "configs/plans/zero1.yaml",
             "--set", "backend=aten", "--no-profile", "--cluster-set", f"gpu.errors.roofline={error}", "--cluster-set", "gpu.memory=1 TB", "--json", "-"],
            cwd=SOURCE, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"leave_one_out.py: {name}: {done.stderr}")
        result = json.loads(done.stdout)
        widths.append(100 * result["bound_ns"] / result["step_time_ns"])
    return widths[0], math.sqrt(max(0, widths[1] ** 2 - widths[0] ** 2)) / 0.1


def held_out(program):
    """Of each workload: name, where its errors are from, the errors, published half-widths, bound's parts."""
    now, first, gave = today(), before(), teachers()
    found, impossible = [], []
    for name in sorted(workloads()):
        if name not in gave and name in now:
            found.append((name, "today", now[name], [None] * len(now[name]), bounds(program, name)))
        elif name in gave and name in first:
            errors, widths = zip(*first[name])
            found.append((name, "before it ran", list(errors), list(widths), bounds(program, name)))
        else:
            impossible.append(name)
    return found, impossible


def inside(entry, roofline):
    """Of a workload's steps the share inside the bound."""
    _, _, errors, published, (rest, slope) = entry
    width = math.hypot(rest, slope * roofline)
    return sum(abs(error) <= max(width, known or 0) for error, known in zip(errors, published)) / len(errors)


def share_inside(found, roofline):
    return sum(inside(entry, roofline) for entry in found) / len(found)


def least_error(found):
    """The smallest error of the roofline, in steps of half a percent, whose bound holds nine of ten."""
    return next(each / 200 for each in range(1, 200) if share_inside(found, each / 200) >= INSIDE)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def page(program):
    found, impossible = held_out(program)
    error = least_error(found)
    of = {kind: [entry for entry in found if entry[1] == kind] for kind in ("today", "before it ran")}

    def size(entries):
        return mean(mean(map(abs, entry[2])) for entry in entries)

    worst = max(found, key=lambda entry: mean(map(abs, entry[2])))
    steps = sum(len(entry[2]) for entry in found)
    lines = [
        "# Leave one workload out",
        "",
        "How far step times without a profile are off for a workload that gave the model no number. Made by `tools/leave_one_out.py`, which says how; errors are predicted less measured, each workload counts once.",
        "",
        "| workloads | number | mean error | within 5 % |",
        "| --- | --- | --- | --- |",
    ]
    for title, entries in (("gave no constant: predicted today", of["today"]), ("gave some: as predicted before any op of them ran", of["before it ran"]), ("**all**", found)):
        within = sum(mean(map(abs, entry[2])) <= 5 for entry in entries)
        lines.append(f"| {title} | {len(entries)} | {size(entries):.1f} % | {within} |")
    lines += [
        "",
        f"{steps} steps; half of the workloads are within {statistics.median(mean(map(abs, entry[2])) for entry in found):.1f} %, the furthest off is {worst[0]}, {mean(worst[2]):+.1f} %. With `errors.roofline: {error}` the bound holds {100 * share_inside(found, error):.0f} % of them, with 0.03 it would hold {100 * share_inside(found, 0.03):.0f} %. That number is the GPU files' own.",
        "",
        f"**What cannot be left out.** {', '.join(impossible)} gave constants and were never predicted before they ran, or have no step to compare, so they are not in the sums. The forms of the laws were chosen with all workloads in sight. What was predicted before a workload ran used the laws of that day, which knew fewer kernels than today's: it is further off than leaving out that workload's numbers alone would be. Gaps, power and contention were read from steps of a few workloads ([accuracy.md](accuracy.md#calibration)) and stay.",
        "",
        "| workload | errors are from | steps | mean error | largest | inside the bound |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for entry in found:
        name, kind, errors = entry[:3]
        lines.append(f"| {name} | {kind} | {len(errors)} | {mean(map(abs, errors)):.1f} % | {max(errors, key=abs):+.1f} % | {100 * inside(entry, error):.0f} % |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text = page(str(pathlib.Path(sys.argv[1]).resolve() / "dc-sim"))
    if sys.argv[2:] == ["--check"]:
        return 0 if PAGE.read_text() == text else 1
    PAGE.write_text(text)
    print(text[: text.index("\n**What cannot")])
    return 0


if __name__ == "__main__":
    sys.exit(main())
