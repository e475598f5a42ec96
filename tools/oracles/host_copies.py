"""Copies between pinned memory and one GPU, round and round in buffers of several sizes, alone and beside compute: whether what
caches of the host or of the GPU hold is copied faster than what is in memory. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/host_copies.py > configs/measured/h200-host-buffers.jsonl

Each copy is timed by events; compute runs on the default stream from before the first copy until behind the last one.
"""

import datetime
import itertools
import json
import statistics

import torch

COPY = 16 << 20  # bytes
BUFFERS = [(COPY, COPY), (6 << 30, 4 << 30)]  # of the host and of the GPU
COPIES = 300


def round_and_round(run, buffers):
    """Calls `run` with the next of the buffers each time."""
    turn = itertools.cycle(buffers)
    return lambda: run(next(turn))


def chains():
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    many = [torch.zeros_like(a) for _ in range(400)]  # 50 GiB
    return {
        "none": lambda: None,
        "mm 8192x8192x8192": lambda: torch.mm(a, a, out=out),
        "mul 128 MiB": lambda: torch.mul(a, 2, out=out),
        "softmax 128 MiB": lambda: torch.softmax(a, 1, out=out),
        "mul 8 MiB": lambda: torch.mul(a[:512], 2, out=out[:512]),
        "mul 128 MiB in 50 GiB": round_and_round(lambda b: b.mul_(2), many),
        "mul 8 MiB in 50 GiB": round_and_round(lambda b: b[:512].mul_(2), many),
        "mm 8192x8192x8192 in 50 GiB": round_and_round(lambda b: torch.mm(a, b, out=out), many),
    }


def parts(buffer):
    return [buffer[i:i + COPY] for i in range(0, buffer.numel(), COPY)]


def rates(host, gpu, out, run):
    """GB/s of each copy."""
    stream = torch.cuda.Stream()
    here, there = (parts(gpu), parts(host)) if out else (parts(host), parts(gpu))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(COPIES + 1)]
    torch.cuda.synchronize()
    beside = torch.cuda.Event()
    for _ in range(4):
        run()
    with torch.cuda.stream(stream):
        events[0].record()
        for i in range(COPIES):
            there[i % len(there)].copy_(here[i % len(here)], non_blocking=True)
            events[i + 1].record()
    while not events[-1].query():
        for _ in range(4):
            run()
        beside.record()
        beside.synchronize()
    torch.cuda.synchronize()
    return [COPY / 1e6 / events[i].elapsed_time(events[i + 1]) for i in range(8, COPIES)]


def main():
    on_host = torch.ones(max(host for host, _ in BUFFERS), dtype=torch.uint8, pin_memory=True)
    on_gpu = torch.ones(max(gpu for _, gpu in BUFFERS), dtype=torch.uint8, device="cuda")
    for beside, run in chains().items():
        for host, gpu in BUFFERS:
            for out in (True, False):
                seen = rates(on_host[:host], on_gpu[:gpu], out, run)
                deciles = statistics.quantiles(seen, n=10)
                print(json.dumps({
                    "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "date": str(datetime.date.today()),
                    "direction": "out" if out else "back", "host_bytes": host, "gpu_bytes": gpu, "copy_bytes": COPY, "beside": beside,
                    "gb_per_s": {"median": round(statistics.median(seen), 2), "tenth": round(deciles[0], 2),
                                 "ninetieth": round(deciles[-1], 2)},
                }), flush=True)


if __name__ == "__main__":
    main()
