#!/usr/bin/env python3
"""Counts a trace of torch.profiler by class of work, without dc-sim.

    tests/tools/count_kineto.py TRACE.json.gz    prints ms by class
    tests/tools/count_kineto.py --check BIN      compares tests/data/kineto with dc-sim of BIN: within 1 %

Ends with 1 where they differ. Steps without markers are one step.
"""
import gzip
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = SOURCE / "tests/data/kineto"
# (workload, plan) by trace
PREDICTED = {
    "llama-3.2-1b-zero1": ("llama-3.2-1b-cudnn", "zero1-deepcompile"),
    "llama-3.2-1b-zero3": ("llama-3.2-1b-cudnn", "zero3-deepcompile"),
    "llama-3.2-1b-zero3-eager": ("llama-3.2-1b-cudnn", "zero3-eager"),
    "olmo2-1b-zero1": ("olmo2-1b", "zero1-deepcompile"),
    "llama-3.2-1b-fsdp2-compiled": ("llama-3.2-1b-cudnn", "fsdp"),
}
MOST_APART = 0.01
# Below, a class is noise: 1 % of it is less than a kernel.
LEAST_MS = 0.1

# The first that matches decides.
KERNELS = [
    ("collectives", r"^nccl"),
    ("triton", r"^triton_"),
    ("attention", r"sdpa|flash|fmha|attention|compute_dot_do_o|convert_dq"),
    ("products", r"nvjet|gemm|cutlass|xmma|splitKreduce|gemv|convol|conv_|_[wd]grad|_fprop"),
    ("other", r"LpNormFunctor"),
    ("optimizer", r"multi_tensor_apply|FusedOptimizer|[Aa]dam|Adagrad"),
    ("copies", r"copy_kernel|CatArrayBatchedCopy|FillFunctor"),
    ("other", r""),
]
NAMES = ["products", "attention", "triton", "other", "collectives", "optimizer", "copies"]


def class_of(event):
    if event["cat"] != "kernel":
        return "collectives" if "PtoP" in event["name"] else "copies"
    return next(name for name, pattern in KERNELS if re.search(pattern, event["name"]))


def union(spans):
    """Total length of what intervals cover."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def count(trace):
    """ms by class; exposed communication, idle and the step, too."""
    events = [event for event in trace["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    sums = dict.fromkeys(NAMES, 0.0)
    spans = {"collectives": [], "rest": []}
    for event in events:
        name = class_of(event)
        sums[name] += event["dur"] / 1000
        kind = "collectives" if name == "collectives" else "rest"
        spans[kind].append((event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000))
    everything = spans["collectives"] + spans["rest"]
    markers = [
        (event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000)
        for event in trace["traceEvents"]
        if event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")
    ]
    bounds = [*markers, *everything]
    step = max(end for _, end in bounds) - min(start for start, _ in bounds)
    busy = union(everything)
    return {**sums, "exposed": busy - union(spans["rest"]), "idle": step - busy, "step": step}


def read(file):
    data = file.read_bytes()
    return json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)


def ask(programs, file, workload, plan):
    """The same of dc-sim."""
    done = subprocess.run(
        [programs / "dc-sim", "simulate", f"traces/{workload}", "--cluster", "h200-1", "--plan", plan,
         "--beside", file.relative_to(SOURCE), "--json", "-"],
        cwd=SOURCE, capture_output=True, text=True, check=True)
    beside = json.loads(done.stdout)
    told = {each["class"]: each["measured_ns"] / 1e6 for each in beside["classes"]}
    for name, key in (("exposed", "exposed_communication_ns"), ("idle", "idle_ns"), ("step", "step_time_ns")):
        told[name] = beside[key]["measured"] / 1e6
    return told


def check(programs):
    wrong = 0
    for name, predicted in PREDICTED.items():
        file = DATA / f"{name}.json.gz"
        counted, told = count(read(file)), ask(programs, file, *predicted)
        if told.keys() != counted.keys():
            print(f"{name}: dc-sim has {sorted(told)}, counted are {sorted(counted)}")
            wrong += 1
        for what, ms in counted.items():
            apart = abs(told.get(what, 0) - ms)
            if apart > max(MOST_APART * ms, MOST_APART * LEAST_MS):
                print(f"{name}: {what}: dc-sim says {told.get(what, 0):.3f} ms, counted are {ms:.3f}")
                wrong += 1
    print(f"{len(PREDICTED)} traces, {wrong} differences")
    return 1 if wrong else 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        return check(pathlib.Path(sys.argv[2]).resolve())
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    for name, ms in count(read(pathlib.Path(sys.argv[1]))).items():
        print(f"{name:12} {ms:9.3f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
