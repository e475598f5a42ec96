#!/usr/bin/env python3
"""Cuts a trace of torch.profiler to what dc-sim reads.

    python3 tests/data/kineto/cut_trace.py TRACE.json.gz OUT.json.gz

Kept are the GPU's events with name, times, device, stream and the call that launched them, the
markers of steps, the calls that launch, where there are markers, and the number of ranks. All else
goes, with it paths, processes and what else names a machine.
"""
import gzip
import json
import pathlib
import sys

GPU = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
KEPT_ARGUMENTS = ("device", "stream", "correlation")


def is_marker(event):
    return event.get("cat", "").endswith("user_annotation") and event["name"].startswith("ProfilerStep#")


def cut(trace):
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    launches = {event["args"]["correlation"] for event in events if event.get("cat") in GPU}
    marked = any(is_marker(event) for event in events)
    first = min(event["ts"] for event in events if event.get("cat") in GPU or is_marker(event))
    kept = []
    for event in events:
        category, arguments = event.get("cat"), event.get("args", {})
        launch = marked and category in CALLS and arguments.get("correlation") in launches
        if category in GPU or launch or is_marker(event):
            kept.append({
                "ph": "X", "cat": category, "name": event["name"],
                "ts": round(event["ts"] - first, 3), "dur": event["dur"],
                "args": {key: arguments[key] for key in KEPT_ARGUMENTS if key in arguments},
            })
    kept.sort(key=lambda event: event["ts"])
    job = {"rank": 0, "world_size": trace.get("distributedInfo", {}).get("world_size", 1)}
    return {"schemaVersion": 1, "distributedInfo": job, "traceEvents": kept}


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    data = source.read_bytes()
    trace = json.loads(gzip.decompress(data) if source.suffix == ".gz" else data)
    document = cut(trace)
    events = ",\n".join(json.dumps(event, separators=(",", ":")) for event in document.pop("traceEvents"))
    text = json.dumps(document, separators=(",", ":"))[:-1] + ',"traceEvents":[\n' + events + "\n]}\n"
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
