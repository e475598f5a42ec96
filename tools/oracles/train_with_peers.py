"""Other trainers on the machine at hand, for the tables in docs/lab/accuracy.md and for the losses that dc-run must reach.

    torchrun --nproc-per-node 4 tools/oracles/train_with_peers.py fsdp2 qwen3-8b --batch 1 --seq 4096 -o fsdp2.json
    torchrun --nproc-per-node 4 tools/oracles/train_with_peers.py deepspeed qwen3-8b --stage 3 -o deepspeed.json
    torchrun --nproc-per-node 2 tools/oracles/train_with_peers.py ddp llama-3.2-1b --batch 4 --seq 2048 -o ddp.json

`fsdp2` and `deepspeed` time eager training of the named architecture with random weights. `ddp` trains the module from the
weights and inputs of the reference training (docs/reference/formats.md), so its losses stand beside those of `dc-run step`.
All use AdamW (fused) on float32 masters, bfloat16 compute, no activation checkpointing, no clipping.
`--clock` adds steps that nothing waits for in between, with the GPU's clock and power; `--trace` a step by PyTorch's profiler.
Needs torch, transformers and, for `deepspeed`, DeepSpeed; PYTHONPATH must hold tools/dcrecord/src.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date
from typing import Any

import torch
import torch.distributed as dist
from dcrecord.architectures import find_architecture
from dcrecord.building import build_with_weights
from dcrecord.model_workloads import model_workload
from dcrecord.options import Options
from dcrecord.outputs import split_loss
from dcrecord.reference_training import AdamW, seeded_input, seeded_parameter
from dcrecord.transformers_attention import plain_attention
from dcrecord.workload import Workload
from gpu_clock import GpuClock
from step_trace import trace_step
from torch import Tensor, nn

CONSTANTS = AdamW()
BF16 = torch.bfloat16


def make_workload(arguments: argparse.Namespace, device: str) -> Workload:
    """The workload with its module on `device`; its attention has no mask, and the kernel that PyTorch takes."""
    options = Options(batch=arguments.batch, sequence=arguments.seq, dtype="bfloat16", attention="flash")
    with torch.device(device):
        return model_workload(find_architecture(arguments.model), options, build_with_weights)


def random_weights(module: nn.Module) -> None:
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
        else:
            nn.init.ones_(parameter)


def loss_of(workload: Workload, module: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
    return split_loss(workload.call(module, *inputs.values()))[0]


def device_inputs(workload: Workload, place: str, seed: int) -> dict[str, Tensor]:
    inputs = {}
    for index, (name, tensor) in enumerate(workload.inputs.items()):
        value = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
        where = place if index == 0 else f"{place}/{name}"
        inputs[name] = seeded_input({"fill": workload.fills[name].to_json()}, value, where, seed).cuda()
    return inputs


def timed(step: Callable[[int], Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Step times as dc-run takes them: maximum over ranks, after warm-up, peaks of the timed steps."""
    for index in range(arguments.warmup):
        step(index)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    step(arguments.warmup)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for index in range(arguments.steps):
        dist.barrier()
        torch.cuda.synchronize()
        start = time.perf_counter()
        step(arguments.warmup + 1 + index)
        torch.cuda.synchronize()
        took = torch.tensor(time.perf_counter() - start, device="cuda", dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        times.append(round(took.item() * 1e9))
    peaks = torch.tensor([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()], device="cuda")
    after = torch.tensor([torch.cuda.memory_allocated()], device="cuda")
    dist.all_reduce(peaks, op=dist.ReduceOp.MAX)
    dist.all_reduce(after, op=dist.ReduceOp.MAX)
    return {
        "step_time_ns": round(statistics.median(times)),
        "step_times_ns": times,
        "peak_allocated_bytes": peaks[0].item(),
        "peak_reserved_bytes": peaks[1].item(),
        "allocated_after_step_bytes": after[0].item(),
    }


def back_to_back(step: Callable[[int], Any], steps: int) -> dict[str, Any]:
    """Time of steps behind each other, by events between them; then the GPU's clock in as many more, since who reads it
    holds locks that launches need."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    dist.barrier()
    for index, event in enumerate(events):
        event.record()
        if index < steps:
            step(index)
    with GpuClock() as clock:
        for index in range(steps):
            step(index)
        torch.cuda.synchronize()
    times = [before.elapsed_time(after) * 1e6 for before, after in zip(events, events[1:])]
    return {"step_time_ns": round(statistics.median(times)), "step_times_ns": [round(each) for each in times], **clock.result()}


def measured(step: Callable[[int], Any], arguments: argparse.Namespace) -> dict[str, Any]:
    result = timed(step, arguments)
    if arguments.clock:
        result["back_to_back"] = back_to_back(step, arguments.clock)
    if arguments.trace:
        trace_step(lambda: step(0), arguments.trace if dist.get_rank() == 0 else os.devnull)
    return result


def train_fsdp2(arguments: argparse.Namespace) -> dict[str, Any]:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    workload = make_workload(arguments, "meta")
    module = workload.body.float()
    policy = MixedPrecisionPolicy(param_dtype=BF16, reduce_dtype=BF16)
    for layer in module.model.layers:
        fully_shard(layer, mp_policy=policy, reshard_after_forward=not arguments.no_reshard)
        if arguments.compile:
            layer.compile()
    fully_shard(module, mp_policy=policy)
    buffers = make_workload_buffers(arguments)
    module.to_empty(device="cuda")
    restore_buffers(module, buffers)
    random_weights(module)
    optimizer = torch.optim.AdamW(module.parameters(), lr=CONSTANTS.lr, fused=True)
    inputs = device_inputs(workload, f"{dist.get_rank()}/0/0", 0)

    def step(_: int) -> None:
        loss_of(workload, module, inputs).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    with plain_attention(workload.body, "flash"):
        return measured(step, arguments)


def make_workload_buffers(arguments: argparse.Namespace) -> dict[str, Tensor]:
    """Buffers (rotary frequencies) of a one-layer twin, built with contents."""
    from dataclasses import replace

    architecture = find_architecture(arguments.model)
    twin = replace(architecture, config={**architecture.config, "num_hidden_layers": 1})
    options = Options(batch=1, sequence=arguments.seq, dtype="bfloat16", attention="flash")
    with torch.device("cuda"):
        body = model_workload(twin, options, build_with_weights).body
    return {name: buffer.clone() for name, buffer in body.named_buffers()}


def restore_buffers(module: nn.Module, buffers: dict[str, Tensor]) -> None:
    for name, buffer in module.named_buffers():
        buffer.copy_(buffers[name])


def train_deepspeed(arguments: argparse.Namespace) -> dict[str, Any]:
    import deepspeed

    workload = make_workload(arguments, "cuda")
    random_weights(workload.body)
    optimizer = torch.optim.AdamW(workload.body.parameters(), lr=CONSTANTS.lr, fused=True)
    config = {
        "train_micro_batch_size_per_gpu": arguments.batch or 1,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": arguments.stage, "overlap_comm": True, "reduce_bucket_size": int(5e8)},
        "zero_allow_untested_optimizer": True,
    }
    engine, *_ = deepspeed.initialize(model=workload.body, optimizer=optimizer, config=config)
    inputs = device_inputs(workload, f"{dist.get_rank()}/0/0", 0)

    def step(_: int) -> None:
        engine.backward(loss_of(workload, engine, inputs))
        engine.step()

    with plain_attention(workload.body, "flash"):
        return measured(step, arguments)


def train_ddp(arguments: argparse.Namespace) -> dict[str, Any]:
    """Losses of the first steps, mean over ranks and micro-steps, from the reference training's weights and inputs."""
    workload = make_workload(arguments, "cuda")
    for name, parameter in workload.body.named_parameters():
        value = {"dtype": "bfloat16", "shape": list(parameter.shape)}
        parameter.data.copy_(seeded_parameter({"name": name}, value, 0))
    module = nn.parallel.DistributedDataParallel(workload.body, device_ids=[torch.cuda.current_device()])
    parameters = list(workload.body.parameters())
    masters = [parameter.detach().float().clone() for parameter in parameters]
    optimizer = torch.optim.AdamW(
        masters, lr=CONSTANTS.lr, betas=(CONSTANTS.beta1, CONSTANTS.beta2), eps=CONSTANTS.eps,
        weight_decay=CONSTANTS.weight_decay, fused=True,
    )
    losses = []
    with plain_attention(workload.body, "flash"):
        for step in range(arguments.steps):
            mean = torch.zeros((), device="cuda", dtype=torch.float64)
            for micro_step in range(arguments.accumulation):
                inputs = device_inputs(workload, f"{dist.get_rank()}/{step}/{micro_step}", 0)
                last = micro_step + 1 == arguments.accumulation
                with nullcontext() if last else module.no_sync():
                    loss = loss_of(workload, module, inputs)
                    (loss / arguments.accumulation).backward()
                mean += loss.detach().double() / arguments.accumulation / dist.get_world_size()
            dist.all_reduce(mean)
            losses.append(mean.item())
            for master, parameter in zip(masters, parameters, strict=True):
                master.grad = parameter.grad.float()
                parameter.grad = None
            optimizer.step()
            for master, parameter in zip(masters, parameters, strict=True):
                parameter.data.copy_(master)
    return {"losses": losses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", choices=["fsdp2", "deepspeed", "ddp"])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--stage", type=int, default=3, help="of deepspeed")
    parser.add_argument("--accumulation", type=int, default=1, help="of ddp")
    parser.add_argument("--compile", action="store_true", help="fsdp2: compile each layer")
    parser.add_argument("--no-reshard", action="store_true", help="fsdp2: keep parameters after the forward")
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--clock", type=int, default=0, help="fsdp2, deepspeed: steps back to back, and as many with the clock")
    parser.add_argument("--trace", default="", help="fsdp2, deepspeed: rank 0's step, .json or .json.gz")
    parser.add_argument("-o", "--out", required=True)
    arguments = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    train = {"fsdp2": train_fsdp2, "deepspeed": train_deepspeed, "ddp": train_ddp}[arguments.trainer]
    result = {
        **vars(arguments),
        "gpus": dist.get_world_size(),
        **train(arguments),
        "versions": {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))},
        "gpu": torch.cuda.get_device_name(),
        "date": date.today().isoformat(),
    }
    if dist.get_rank() == 0:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
