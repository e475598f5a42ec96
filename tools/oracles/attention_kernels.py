"""Which kernel PyTorch takes for scaled_dot_product_attention on this GPU, and what each kernel that takes a call needs:
time of its kernels forward and backward, and memory beyond its results. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/attention_kernels.py > configs/measured/h200-attention.jsonl
"""

import json
from collections import Counter

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

KERNELS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
NAMES = {-1: "none", 0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
REPEATS = 10


def case(batch, heads, queries, head, *, keys=None, key_heads=None, value_head=None, causal=False, mask=None, **more):
    return {
        "batch": batch,
        "heads": heads,
        "key_heads": key_heads or heads,
        "queries": queries,
        "keys": keys or queries,
        "head": head,
        "value_head": value_head or head,
        "causal": causal,
        "mask": mask,
        "dtype": "bfloat16",
        "trains": True,
        **more,
    }


# Numbers of the laws are read from the first list; the second tells how well they hold.
FITTED = [
    case(1, 32, 4096, 128, key_heads=8, causal=True),
    case(4, 32, 2048, 64, key_heads=8, causal=True),
    case(1, 32, 512, 128, key_heads=8, causal=True),
    case(1, 16, 16384, 128, causal=True),
    case(64, 16, 197, 64),
    case(8, 16, 1024, 64),
    case(2, 16, 4096, 64),
    case(8, 20, 1024, 64, mask="full"),
    case(4, 16, 2048, 64, mask="rows"),
    case(2, 16, 2048, 128, mask="full"),
    case(32, 24, 49, 32),
    case(2, 16, 2048, 192, value_head=128, causal=True),
    case(1, 64, 256, 128),
    case(1, 44, 1024, 128),
    case(1, 44, 1024, 64),
    case(1, 33, 8192, 128),
    case(1, 33, 8192, 64),
    case(1, 264, 384, 64),
    case(1, 264, 192, 128),
    case(1, 132, 64, 64, keys=4096),
    case(1, 132, 4096, 64, keys=64),
]
HELD_OUT = [
    case(2, 16, 2048, 128, key_heads=8, causal=True),
    case(4, 32, 1024, 128, key_heads=8, causal=True),
    case(1, 32, 2048, 128, causal=True),
    case(1, 32, 8192, 64, key_heads=8, causal=True),
    case(4, 12, 1024, 64, causal=True),
    case(4, 25, 1024, 64, causal=True),
    case(1, 32, 4096, 96, causal=True),
    case(2, 20, 2048, 80, causal=True),
    case(16, 16, 512, 64),
    case(64, 12, 77, 64, causal=True),
    case(64, 16, 257, 64),
    case(8, 16, 1500, 64),
    case(8, 16, 448, 64, keys=1500),
    case(8, 16, 448, 64, causal=True),
    case(32, 16, 256, 72),
    case(4, 16, 1024, 64, mask="rows"),
    case(1, 32, 4096, 128, key_heads=8, mask="rows"),
    case(8, 16, 512, 64, mask="full"),
    case(16, 16, 499, 80),
    case(4, 20, 1500, 128, mask="full"),
    case(4, 16, 1024, 192, value_head=128, causal=True),
]
# Wide heads, and keys and values of different width.
WIDE = [
    case(2, 8, 1024, 144, causal=True),
    case(2, 8, 1024, 192, causal=True),
    case(2, 8, 1024, 256, causal=True),
    case(2, 8, 1024, 256, key_heads=2, causal=True),
    case(2, 8, 1024, 256, mask="full"),
    case(2, 8, 1024, 256, mask="full", key_heads=2),
    case(2, 8, 1024, 192, value_head=64),
    case(2, 8, 1024, 64, value_head=128),
    case(2, 8, 1024, 64, value_head=128, mask="full"),
    case(2, 8, 1024, 160, value_head=96),
    case(2, 8, 1024, 256, value_head=128),
]
# What decides which kernel is taken.
CHOSEN = [
    case(2, 4, 128, 64, dtype="float32"),
    case(2, 4, 128, 64, dtype="float16"),
    case(2, 4, 128, 100),
    case(2, 4, 128, 60),
    case(2, 4, 128, 60, mask="full"),
    case(2, 4, 128, 264),
    case(2, 4, 128, 64, keys=96),
    case(2, 4, 128, 64, keys=96, causal=True),
    case(2, 4, 128, 64, keys=1),
    case(2, 4, 1, 64, keys=128),
    case(2, 4, 128, 64, key_heads=2),
    case(2, 4, 128, 64, key_heads=1),
    case(2, 4, 128, 64, key_heads=2, mask="full"),
    case(2, 4, 128, 64, key_heads=2, mask="full", dtype="float32"),
    case(2, 4, 128, 64, mask="bool"),
    case(2, 4, 128, 64, mask="two"),
    case(2, 4, 128, 64, mask="rows"),
    case(2, 4, 128, 64, mask="trained"),
    case(2, 4, 128, 64, mask="float32"),
    case(2, 4, 127, 64, mask="full"),
    case(2, 4, 128, 64, mask="columns"),
    case(2, 4, 128, 64, mask="three"),
    case(2, 4, 128, 64, trains=False),
    case(2, 4, 128, 256, trains=False),
    case(2, 4, 128, 64, layout="heads first"),
    case(2, 4, 128, 64, layout="strided"),
    case(2, 4, 128, 64, layout="odd"),
    case(70000, 1, 16, 16),
]


def mask_of(of, device):
    dtype = getattr(torch, of["dtype"])
    batch, heads, queries, keys = of["batch"], of["heads"], of["queries"], of["keys"]
    new = {
        None: lambda: None,
        "full": lambda: torch.zeros(batch, heads, queries, keys, device=device, dtype=dtype),
        "rows": lambda: torch.zeros(batch, 1, queries, keys, device=device, dtype=dtype),
        "bool": lambda: torch.ones(batch, 1, queries, keys, device=device, dtype=torch.bool),
        "two": lambda: torch.zeros(queries, keys, device=device, dtype=dtype),
        "three": lambda: torch.zeros(heads, queries, keys, device=device, dtype=dtype),
        "columns": lambda: torch.zeros(batch, 1, 1, keys, device=device, dtype=dtype),
        "trained": lambda: torch.zeros(1, heads, queries, keys, device=device, dtype=dtype, requires_grad=True),
        "float32": lambda: torch.zeros(batch, 1, queries, keys, device=device),
    }
    return new[of["mask"]]()


def tensor(of, heads, length, head, device):
    made_as = {"device": device, "dtype": getattr(torch, of["dtype"])}
    layout = of.get("layout", "sequence first")
    if layout == "heads first":
        made = torch.randn(of["batch"], heads, length, head, **made_as)
    elif layout == "strided":
        made = torch.randn(of["batch"], heads, head, length, **made_as).transpose(2, 3)
    elif layout == "odd":
        made = torch.randn(of["batch"], length, heads, head + 1, **made_as)[..., 1:].transpose(1, 2)
    else:
        made = torch.randn(of["batch"], length, heads, head, **made_as).transpose(1, 2)
    return made.detach().requires_grad_(of["trains"])


def operands_of(of, device):
    """Query, key, value and mask of a call."""
    return (
        tensor(of, of["heads"], of["queries"], of["head"], device),
        tensor(of, of["key_heads"], of["keys"], of["head"], device),
        tensor(of, of["key_heads"], of["keys"], of["value_head"], device),
        mask_of(of, device),
    )


def kernels_of(run):
    """Microseconds in each kernel of one call, the longest first; those whose names begin alike as one."""
    run()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(REPEATS):
            run()
        torch.cuda.synchronize()
    times = Counter()
    for event in trace.key_averages():
        if event.self_device_time_total > 0:
            times[event.key.split("(")[0][:90].strip()] += event.self_device_time_total
    return {name: round(time / REPEATS, 2) for name, time in times.most_common()}


def extra_bytes(run):
    """Peak of allocated bytes beyond what is there before and after."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    kept = run()
    torch.cuda.synchronize()
    extra = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
    del kept
    return extra


def measure(of, group):
    query, key, value, mask = operands_of(of, "cuda")
    grouped = of["heads"] != of["key_heads"]
    arguments = {"attn_mask": mask, "is_causal": of["causal"], "enable_gqa": grouped}
    result = {"group": group, **of}
    try:
        result["chosen"] = NAMES[torch._fused_sdp_choice(query, key, value, **arguments)]
    except RuntimeError as error:
        result["chosen"] = str(error).split("\n")[0][:120]
    if group == "chosen":
        return result
    for kernel, backend in KERNELS.items():
        with sdpa_kernel([backend]):
            try:
                def forward():
                    return scaled_dot_product_attention(query, key, value, **arguments)

                out = forward()
                gradient = torch.randn_like(out)

                def backward(out=out, gradient=gradient):
                    return torch.autograd.grad(out, (query, key, value), gradient, retain_graph=True)

                backward()
                result[kernel] = {
                    "forward_us": kernels_of(forward),
                    "backward_us": kernels_of(backward),
                    "forward_extra_bytes": extra_bytes(forward),
                    "backward_extra_bytes": extra_bytes(backward),
                }
            except RuntimeError as error:
                result[kernel] = str(error).split("\n")[0][:120]
    return result


def main():
    torch.manual_seed(0)
    about = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "gpu": torch.cuda.get_device_name()}
    print(json.dumps(about), flush=True)
    for group, cases in (("fitted", FITTED), ("held out", HELD_OUT), ("wide", WIDE), ("chosen", CHOSEN)):
        for of in cases:
            print(json.dumps(measure(of, group)), flush=True)


if __name__ == "__main__":
    main()
