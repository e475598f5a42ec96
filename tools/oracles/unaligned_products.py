"""Times of the linear layers that recorded workloads have most of, and of their inputs' gradients, with weight and bias that
begin 0, 8, 4 and 2 bytes behind a multiple of 16, as parameters do that ZeRO-1 and 2 keep side by side in one tensor; and
with the bias alone 2 bytes behind. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/unaligned_products.py > configs/measured/h200-unaligned-products.jsonl
"""

import collections
import json
import lzma
import pathlib

import torch

TRACES = pathlib.Path(__file__).resolve().parent.parent.parent / "traces"
WORKLOADS = (
    "swin-large clip-large bert-large vit-large latent-unet deberta-v3-large qwen3-1.7b gpt2 hiera-large whisper-medium "
    "t5-large llama-3.2-1b"
).split()
OPTIONS = {"dtype": torch.bfloat16, "device": "cuda"}


def linear_layers(workload, most=6):
    """Rows, depth, columns, and whether there is a bias, of the most frequent products with a parameter."""
    with lzma.open(TRACES / workload / "graph.json.xz") as file:
        graph = json.load(file)
    values = graph["values"]
    params = {values[param["value"]]["storage"] for param in graph["params"]}
    found = collections.Counter()
    for op in graph["graphs"][0]["ops"]:
        schema = graph["schemas"][op["schema"]]
        name = schema if isinstance(schema, str) else schema["name"]
        if "addmm" not in name and not name.startswith("aten::mm"):
            continue
        left, right = [arg["v"] for arg in op["args"] if isinstance(arg, dict) and "v" in arg][-2:]
        if values[right]["storage"] in params:
            rows, depth = values[left]["shape"]
            found[rows, depth, values[right]["shape"][1], "addmm" in name] += 1
    return [layer for layer, _ in found.most_common(most)]


def microseconds(run, calls=12):
    """Median of three means; the GPU sleeps first, so that the host is ahead."""
    for _ in range(3):
        run()
    means = []
    for _ in range(3):
        torch.cuda.synchronize()
        torch.cuda._sleep(3_000_000)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            run()
        end.record()
        torch.cuda.synchronize()
        means.append(begin.elapsed_time(end) * 1e3 / calls)
    return round(sorted(means)[1], 2)


def measure(workload, rows, depth, columns, bias):
    what = {"workload": workload, "rows": rows, "depth": depth, "columns": columns, "bias": bias}
    x, gradient = torch.randn(rows, depth, **OPTIONS), torch.randn(rows, columns, **OPTIONS)
    weights, biases = torch.randn(columns * depth + 64, **OPTIONS), torch.randn(columns + 64, **OPTIONS)

    def forward(weight_begin, bias_begin):
        weight = weights.narrow(0, weight_begin, columns * depth).view(columns, depth)
        added = biases.narrow(0, bias_begin, columns)
        return (lambda: torch.addmm(added, x, weight.t())) if bias else (lambda: torch.mm(x, weight.t()))

    for offset in (0, 8, 4, 2):
        weight = weights.narrow(0, offset // 2, columns * depth).view(columns, depth)
        forward_us = microseconds(forward(offset // 2, offset // 2))
        gradient_us = microseconds(lambda weight=weight: torch.mm(gradient, weight))
        print(json.dumps({**what, "offset_bytes": offset, "forward_us": forward_us, "input_gradient_us": gradient_us}))
    if bias:
        print(json.dumps({**what, "bias_offset_bytes": 2, "offset_bytes": 0, "forward_us": microseconds(forward(0, 1))}))


def main():
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}))
    layers = {layer: workload for workload in WORKLOADS for layer in linear_layers(workload)}
    for layer, workload in layers.items():
        measure(workload, *layer)


if __name__ == "__main__":
    main()
