"""Many short kernels on a high-priority stream, divisions or copies of a model's gradients, beside a chain of one kernel on
the default stream: what they take longer, and what the chain does. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/side_kernels.py > configs/measured/h200-side-kernels.jsonl
  python3 tools/oracles/side_kernels.py "(4 MiB|gpt2).* mm" > configs/measured/h100-side-products.jsonl

The pattern, if any, chooses by what runs beside what, "divide 32 tensors, 4 MiB each beside mm 4096x4096x4096".

`alone_us` is by events, without kernel records; all else by CUPTI's records of one run, after two to warm up.
"""

import json
import pathlib
import re
import statistics
import sys
import tempfile

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

LAYERS = {  # elements of one layer's gradients, and how many tensors are taken
    "gpt2-xl": ([1600 * 6400, 6400, 6400 * 1600, 1600, 1600 * 4800, 4800, 1600 * 1600] + [1600] * 5, 192),
    "llama-3.2-1b": ([2048 * 8192] * 3 + [2048 * 2048, 512 * 2048, 512 * 2048, 2048 * 2048, 2048, 2048], 72),
    "vit-large": ([1024 * 1024, 1024] * 4 + [4096 * 1024, 4096, 4096 * 1024] + [1024] * 5, 192),
    "1,024 elements each": ([1024], 192),
    "32 MiB each": ([16 << 20], 32),
    "4 MiB each": ([2 << 20], 32),
}
PRODUCTS = [
    (4096, 6400, 1600),
    (8192, 8192, 2048),
    (2048, 2048, 8192),
    (4096, 4096, 4096),
    (4096, 6144, 4096),
    (2816, 3072, 4096),
]
SLEEP = 6_000_000  # clocks, while the host issues everything behind it
BEFORE, BEHIND = 6, 120  # kernels of the chain, before the others are let go and from then on


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def doubled(elements):
    tensor = random(elements)
    out = torch.empty_like(tensor)
    return lambda: torch.mul(tensor, 2, out=out)


def product(m, n, k):
    a, b = random(m, k), random(k, n)
    return f"mm {m}x{n}x{k}", lambda: torch.mm(a, b)


def chains():
    large = random(4 * 2048 * 8192)
    sum_of_large = torch.empty_like(large)
    rows = random(16384, 4096)
    short, long = random(4, 32, 2048, 64), random(1, 32, 4096, 128)
    return {
        "mul 52 MB": doubled(4096 * 6400),
        "mul 134 MB": doubled(4 * 2048 * 8192),
        "mul 2 MB": doubled(1 << 20),
        "add 134 MB": lambda: torch.add(large, large, out=sum_of_large),
        "softmax 134 MB": lambda: torch.softmax(rows, 1),
        "sum 134 MB": lambda: rows.sum(0),
        **dict(product(*sizes) for sizes in PRODUCTS),
        "attention 4x32x2048x64": lambda: scaled_dot_product_attention(short, short, short, is_causal=True),
        "attention 1x32x4096x128": lambda: scaled_dot_product_attention(long, long, long, is_causal=True),
    }


def run(side, issue, kernel=None):
    """All behind a kernel that sleeps, `issue` on the side stream in the middle of the chain; us of `issue` by events."""
    main = torch.cuda.current_stream()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(SLEEP)
    for _ in range(BEFORE if kernel else 0):
        kernel()
    side.wait_stream(main)
    with torch.cuda.stream(side):
        begin.record()
        issue()
        end.record()
    for _ in range(BEHIND if kernel else 0):
        kernel()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3


def records(side, issue, kernel):
    """[stream, start, ns] of each kernel and copy, in their order, without the one that sleeps."""
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        run(side, issue, kernel)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "trace.json")
        trace.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    found = [
        (event["args"]["stream"], event["ts"] * 1e3, event["dur"] * 1e3)
        for event in events
        if event.get("cat") in ("kernel", "gpu_memcpy")
    ]
    return sorted(found, key=lambda event: event[1])[1:]


def beside(side, issue, kernel, count):
    found = records(side, issue, kernel)
    chain_stream = found[0][0]
    chain = [event for event in found if event[0] == chain_stream]
    others = [event for event in found if event[0] != chain_stream]
    assert len(others) == count, (len(others), count)
    first, last = others[0][1], others[-1][1] + others[-1][2]
    periods = [(a[1], b[1] - a[1]) for a, b in zip(chain, chain[1:])]
    alone = [period for start, period in periods if start > last]
    during = [period for start, period in periods if first < start < last - period]
    if not alone or not during:  # the chain ended before them, or one kernel of it lasted as long
        return None
    return {
        "span_us": round((last - first) / 1e3, 1),
        "chain_alone_us": round(statistics.median(alone) / 1e3, 2),
        "chain_us": round(statistics.mean(during) / 1e3, 2),
        "chain_kernels": len(during),
    }


def main():
    torch.manual_seed(0)
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    side = torch.cuda.Stream(priority=-1)
    kernels = chains()
    print(json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}))
    for name, (layer, count) in LAYERS.items():
        sizes = (layer * count)[:count]
        tensors = random(sum(sizes)).split(sizes)
        copies = [torch.empty_like(tensor) for tensor in tensors]
        ways = {
            "divide": lambda: [tensor.div_(2) for tensor in tensors],
            "copy": lambda: [copy.copy_(tensor) for copy, tensor in zip(copies, tensors)],
        }
        for what, issue in ways.items():
            found = [each for each in kernels.items() if wanted.search(f"{what} {count} tensors, {name} beside {each[0]}")]
            if not found:
                continue
            run(side, issue)
            alone = statistics.median(run(side, issue) for _ in range(5))
            row = {"side": f"{what} {count} tensors, {name}", "moved_bytes": 4 * sum(sizes), "alone_us": round(alone, 1)}
            print(json.dumps(row), flush=True)
            for kernel_name, kernel in found:
                for _ in range(2):
                    run(side, issue, kernel)
                measured = beside(side, issue, kernel, count)
                if measured:
                    print(json.dumps({"side": row["side"], "beside": kernel_name, **measured}), flush=True)


if __name__ == "__main__":
    main()
