#!/usr/bin/env python3
"""Draws the table of measured steps (docs/lab/accuracy_cases.md) as docs/lab/accuracy.svg.

    tools/plot_accuracy.py     needs matplotlib (3.11 drew the committed picture)

Left, the error of every step by how long it takes; right, the share of steps whose error is at most so large. Steps whose
host was read as slower than priced, by a hundredth of the step or more, are apart.
"""
import matplotlib
from accuracy import TABLE, committed_rows
from matplotlib import pyplot

MACHINES = {"one H200": ("h200-1", "tab:blue"), "two H200s": ("h200-2", "tab:green"), "four H200s": ("h200-4", "tab:red"),
            "H100s": ("h100", "tab:orange")}
MOST = 15  # percent that the pictures show
AS_READ, SLOW = "black", "0.6"


def shares(errors):
    """Points of the curve: an error, and the percent of the errors that are no larger."""
    found = sorted(abs(error) for error in errors)
    return found, [100 * (i + 1) / len(found) for i in range(len(found))]


def draw(cases):
    alone = [case for case in cases if not case["host"]]
    slow = [case for case in cases if case["host"]]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2), layout="constrained")
    left.axhspan(-5, 5, color="0.94", zorder=0)
    for name, (cluster, colour) in MACHINES.items():
        here = [case for case in alone if case["cluster"].startswith(cluster)]
        left.scatter([case["measured"] for case in here], [case["error"] for case in here], s=6, color=colour, linewidths=0,
                     label=f"{name}, {len(here)} steps")
    left.scatter([case["measured"] for case in slow], [case["error"] for case in slow], s=8, facecolors="none",
                 edgecolors=SLOW, linewidths=0.6, zorder=1, label=f"host slower than priced, {len(slow)}")
    left.set(xscale="log", xlabel="measured step, ms", ylabel="predicted less measured, %", ylim=(-MOST, MOST))
    left.legend(fontsize=8, loc="upper right")
    right.plot(*shares(case["error"] for case in alone), color=AS_READ, label="profile of the model on the GPU")
    right.plot(*shares(case["roofline"] for case in alone), color=AS_READ, linestyle="--", label="no profile: no GPU needed")
    right.plot(*shares(case["with_host"] for case in slow), color=SLOW, label="slow host, predicted with it")
    right.plot(*shares(case["error"] for case in slow), color=SLOW, linestyle="--", label="slow host, not known")
    right.set(xlabel="error at most, %", ylabel="% of the steps", xlim=(0, MOST), ylim=(0, 100))
    right.legend(fontsize=8, loc="lower right")
    for axes in (left, right):
        axes.grid(color="0.9", linewidth=0.5)
    return figure


def main():
    matplotlib.rcParams["svg.hashsalt"] = "accuracy"  # the same bytes each time
    cases = []
    for cells in committed_rows():
        cluster, measured, error, roofline, host = cells[1], *(cells[i] for i in (4, 5, 6, 7))
        cases.append({"cluster": cluster, "measured": float(measured), "error": float(error), "roofline": float(roofline),
                      "host": host, "with_host": float(host.split()[1]) if host else None})
    draw(cases).savefig(TABLE.with_name("accuracy.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
