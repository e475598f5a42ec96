#!/usr/bin/env python3
"""What collectives err by that were not measured at their size or number of ranks.

    tools/collective_errors.py

Leaves points out of the tables of configs/clusters (NCCL, single calls) and prices them from the rest, as
model/cost/collective_cost.h does: each size from its neighbours, the table of two ranks from that of four and
the other way round. Prints `errors.sizes` and `errors.ranks` of the GPU files: the standard deviation for each
power of two to the nearest measured size or number, 1.48 times the median error.
"""
import math
import pathlib
import statistics

import yaml

SOURCE = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "ns": 1, "us": 1e3, "ms": 1e6}
MEASURED_IN_FULL = {"h200": ("h200-2", "h200-4"), "h100": ("h100-2", "h100-4")}
HOP_NS = 600
OF_MEDIAN = 1.4826


def quantity(text):
    number, unit = str(text).split()
    return float(number) * UNITS[unit]


def tables(cluster):
    """Points of single calls by kind."""
    document = yaml.safe_load((SOURCE / "configs" / "clusters" / f"{cluster}.yaml").read_text())
    return {
        table["kind"]: [(quantity(size), quantity(time)) for size, time in table["points"]]
        for table in document["collectives"]
        if table.get("calls", 1) == 1
    }


def size_errors(points):
    """Errors a power of two of every size from the sizes beside it."""
    for (low, low_time), (size, time), (high, high_time) in zip(points, points[1:], points[2:]):
        between = low_time + (size - low) / (high - low) * (high_time - low_time)
        yield abs(between / time - 1) / min(math.log2(size / low), math.log2(high / size))


def rank_errors(kind, known, wanted, ranks, more):
    """Errors of `more` ranks from a table of `ranks`, a power of two apart."""
    start = known[0][1]
    hops = (2 if kind == "all_reduce" else 1) * HOP_NS * (more - ranks)
    of_size = dict(known)
    for size, time in wanted:
        if size in of_size:
            whole = max(0, of_size[size] - start) * ranks / (ranks - 1)
            yield abs((max(0, start + hops) + whole * (more - 1) / more) / time - 1)


def main():
    sizes, ranks = [], []
    for two, four in MEASURED_IN_FULL.values():
        of_two, of_four = tables(two), tables(four)
        for kind in of_two:
            sizes += [*size_errors(of_two[kind]), *size_errors(of_four[kind])]
            ranks += rank_errors(kind, of_two[kind], of_four[kind], 2, 4)
            ranks += rank_errors(kind, of_four[kind], of_two[kind], 4, 2)
    for name, errors in (("sizes", sizes), ("ranks", ranks)):
        print(f"{name}: {OF_MEDIAN * statistics.median(errors):.2f}   of {len(errors)} points, median error {100 * statistics.median(errors):.1f} %")


if __name__ == "__main__":
    main()
