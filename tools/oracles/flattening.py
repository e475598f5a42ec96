"""Times of at::cat over gradients of recorded workloads, as eager DeepSpeed flattens a bucket of 5e8 elements in ZeRO-3, of
the copies that store its shards, of at::cat over parts of chosen sizes, and of copies that begin between multiples of 16
bytes. Needs a GPU; prints one JSON object a line.

  python3 tools/oracles/flattening.py > configs/measured/h200-flattening.jsonl
"""

import json
import lzma
import math
import pathlib

import torch

TRACES = pathlib.Path(__file__).resolve().parent.parent.parent / "traces"
BUCKET = 500_000_000  # elements
WORKLOADS = (
    "roberta-large hiera-large swin-large t5-large bert-large gpt2 bart-large llama-3.2-1b vit-large deberta-v3-large "
    "pvt-v2-b3 qwen3-next-4 whisper-medium segformer-b5 gemma-3-1b convnext-large"
).split()
OPTIONS = {"dtype": torch.bfloat16, "device": "cuda"}


def times(run, repeats, cycles):
    """Median, least and most, us. The GPU sleeps first, so that the host is ahead."""
    taken = []
    for i in range(repeats + 2):
        torch.cuda.synchronize()
        torch.cuda._sleep(cycles)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        if i >= 2:
            taken.append(begin.elapsed_time(end) * 1e3)
    taken.sort()
    return taken[len(taken) // 2], taken[0], taken[-1]


def report(op, us, calls=1, **what):
    median, least, most = (round(each / calls, 2) for each in us)
    print(json.dumps({"op": op, **what, "us": median, "least_us": least, "most_us": most}), flush=True)


def buckets(workload):
    """Elements of the trained parameters, last first, by bucket."""
    with lzma.open(TRACES / workload / "graph.json.xz") as file:
        graph = json.load(file)
    filled = [[]]
    for param in reversed(graph["params"]):
        if param.get("requires_grad", True):
            numel = math.prod(graph["values"][param["value"]]["shape"])
            if filled[-1] and sum(filled[-1]) + numel > BUCKET:
                filled.append([])
            filled[-1].append(numel)
    return filled


def slices(tensor, lengths):
    return torch.split(tensor.narrow(0, 0, sum(lengths)), lengths)


def flatten(workload, number, lengths):
    gradients = slices(torch.zeros(sum(lengths), **OPTIONS), lengths)
    for ranks in (1, 2, 4):
        shards = [-(-length // ranks) for length in lengths]
        parts = [
            gradient[rank * shard : (rank + 1) * shard]
            for rank in range(ranks)
            for gradient, shard in zip(gradients, shards)
            if rank * shard < gradient.numel()
        ]
        flat = torch.empty(sum(part.numel() for part in parts), **OPTIONS)
        what = {"workload": workload, "bucket": number, "ranks": ranks, "parts": len(parts), "elements": flat.numel()}
        report("cat", times(lambda: torch.cat(parts, out=flat), 5, 30_000_000), **what)
        if ranks <= 2:
            partition = slices(torch.empty(sum(shards), **OPTIONS), shards)
            sources = slices(torch.empty(sum(shards), **OPTIONS), shards)

            def store(partition=partition, sources=sources):
                for target, source in zip(partition, sources):
                    target.copy_(source, non_blocking=True)

            what |= {"parts": len(shards), "elements": sum(shards)}
            report("copies", times(store, 3, 60_000_000), **what)


def concatenate(sizes, begin):
    parts = slices(torch.zeros(begin + sum(sizes), **OPTIONS), [begin, *sizes])[1:] if begin else slices(
        torch.zeros(sum(sizes), **OPTIONS), sizes
    )
    flat = torch.empty(sum(sizes), **OPTIONS)
    us = times(lambda: torch.cat(parts, out=flat), 9, 5_000_000)
    report("cat", us, parts=len(sizes), largest=max(sizes), smallest=min(sizes), begin=begin)


def copy(elements, source, target):
    begin = torch.zeros(elements + 64, **OPTIONS).narrow(0, source // 2, elements)
    end = torch.zeros(elements + 64, **OPTIONS).narrow(0, target // 2, elements)

    def run():
        for _ in range(100):
            end.copy_(begin, non_blocking=True)

    report("copy", times(run, 3, 10_000_000), 100, elements=elements, source_bytes=source, target_bytes=target)


def main():
    print(json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}))
    for workload in WORKLOADS:
        for number, lengths in enumerate(buckets(workload)[:2]):
            flatten(workload, number, lengths)
    for parts in (16, 64, 128):
        for largest in (8, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
            concatenate([largest] + [8] * (parts - 1), 0)
            concatenate([largest] + [9] * (parts - 1), 1)
    for parts in (16, 128):
        for size in (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22):
            concatenate([size] * parts, 0)
            concatenate([size + 1] * parts, 0)
    for elements in (1 << 9, 1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24):
        for source, target in ((0, 0), (2, 2), (2, 0), (0, 2), (4, 4), (8, 8), (4, 0), (2, 4)):
            copy(elements, source, target)


if __name__ == "__main__":
    main()
