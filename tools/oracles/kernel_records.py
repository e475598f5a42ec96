"""What recording kernels adds to them: the time of an op by events, without records before and after and with them, and the sum
of its records. Needs a GPU; prints one JSON object a line, each case twice.

  python3 tools/oracles/kernel_records.py > configs/measured/h100-kernel-records.jsonl
"""

import json

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile


def microseconds(run, repeats):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / repeats * 1e3


def warm(run):
    for _ in range(5):
        run()
    torch.cuda.synchronize()


def recorded(run, repeats):
    warm(run)
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        elapsed = microseconds(run, repeats)
    kernels = [event for event in trace.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return {
        "traced_kernels_us": round(sum(event.device_time for event in kernels) / repeats, 1),
        "traced_events_us": round(elapsed, 1),
        "kernels": len(kernels) / repeats,
    }


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def cases():
    outer, inner = random(1, 4, 256, 1, 48, 128, dtype=torch.float32), random(1, 4, 1, 256, 48, 128, dtype=torch.float32)
    many, others, few, rest = random(1 << 27), random(1 << 27), random(1 << 23), random(1 << 23)
    matrix, rows, weight, images = random(8192, 8192), random(32768, 2048), random(2048), random(64, 2048, 2048)
    heads = random(4, 32, 4096, 64)
    yield "mul broadcast float32", lambda: outer * inner, 20
    yield "add contiguous bf16", lambda: many + others, 60
    yield "mm 8192", lambda: matrix @ matrix, 30
    yield "layer_norm", lambda: functional.layer_norm(rows, (2048,), weight, weight), 100
    yield "gelu", lambda: functional.gelu(many), 60
    yield "sum rows", lambda: rows.float().sum(1), 60
    yield "transpose copy", lambda: images.transpose(1, 2).contiguous(), 30
    yield "add 16 MiB", lambda: few + rest, 300
    yield "softmax", lambda: torch.softmax(rows, 1), 100
    yield "sdpa", lambda: functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True), 30


def main():
    torch.manual_seed(0)
    for name, run, repeats in cases():
        for _ in range(2):
            warm(run)
            before = microseconds(run, repeats)
            traced = recorded(run, repeats)
            warm(run)
            after = microseconds(run, repeats)
            print(json.dumps({"case": name, "events_us": round(before, 1), "again_us": round(after, 1), **traced}))


if __name__ == "__main__":
    main()
