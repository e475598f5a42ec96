#!/usr/bin/env python3
"""One DeepSpeed job on GPUs, launched by torchrun: trains, and rank 0 appends what it measured to a file, a line of JSON.

    torchrun --nproc_per_node=N tests/gpu/deepspeed_job.py --model own --mode plan --plan best.json --out results.jsonl

Models: llama-3.2-1b, own (below), or the model.py of a workload (traces/qwen2.5-1.5b/model.py), in bfloat16.

Modes: default (DeepCompile's own schedule: gathers at use, from step 5 on prefetching and selective gathers), gathers (at
use to the end), record (as default, and its graphs are written), plan; eager (DeepSpeed without DeepCompile).
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import lzma
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gpu_clock import GpuClock
from step_trace import trace_step
from torch import nn

# (sequences of a micro-step on each rank, tokens of one) by model.
SHAPES = {"llama-3.2-1b": (4, 2048), "own": (8, 1024)}
# Steps before those that are measured: DeepSpeed compiles anew at the fifth.
WARM_UP = 10


class OwnBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_products = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (each.view(shape).transpose(1, 2) for each in self.attention(self.norm_attention(x)).chunk(3, dim=-1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm_products(x))))


class OwnModel(nn.Module):
    """A language model as users write them: 24 blocks of width 1,024, embeddings that are not tied, (loss, logits)."""

    def __init__(self, vocabulary: int = 32_000, width: int = 1024, layers: int = 24, heads: int = 16, length: int = 1024):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(OwnBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten()), logits


@dataclass(frozen=True)
class Job:
    """A model with random weights, and what a step does with it.

    name     in results
    inputs   makes a rank's inputs, sequences first
    call     calls the engine with them, gives the loss
    """

    name: str
    model: nn.Module
    inputs: Callable[[torch.Generator], list[torch.Tensor]]
    call: Callable[[Any, list[torch.Tensor]], torch.Tensor]


def tokens_below(vocabulary: int, shape: tuple[int, ...], device: torch.device, generator: torch.Generator) -> torch.Tensor:
    return torch.randint(0, vocabulary, shape, device=device, generator=generator)


def make_job(name: str, device: torch.device) -> Job:
    torch.manual_seed(0)
    if name.endswith(".py"):
        return job_of_file(Path(name), device)
    if name == "own":
        with device:
            model = OwnModel().to(torch.bfloat16)
        return Job(
            name,
            model,
            lambda generator: [tokens_below(32_000, SHAPES[name], device, generator)],
            lambda engine, given: engine(given[0], given[0].roll(-1, 1))[0],
        )
    return llama(name, device)


def job_of_file(path: Path, device: torch.device) -> Job:
    """The workload beside `path`: its build() gives module and inputs, its recording what integers lie below."""
    import dcsim_deepspeed

    loaded = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    with device:
        model, examples = module.build()
    by_name = isinstance(examples, dict)
    model = model.to(device, torch.bfloat16)
    dcsim_deepspeed.leave_out_masks(model)
    with lzma.open(path.with_name("graph.json.xz"), "rt") as file:
        fills = {entry["name"]: entry["fill"] for entry in json.load(file)["inputs"]}
    examples = examples if by_name else dict(zip(fills, examples))

    def inputs(generator: torch.Generator) -> list[torch.Tensor]:
        made = []
        for key, example in examples.items():
            if "vocabulary" in fills.get(key, {}):
                made.append(tokens_below(fills[key]["vocabulary"], tuple(example.shape), device, generator))
            elif example.is_floating_point():
                made.append(torch.randn(example.shape, device=device, generator=generator).to(torch.bfloat16))
            else:
                made.append(example.to(device))
        return made

    def call(engine: Any, given: list[torch.Tensor]) -> torch.Tensor:
        returned = engine(**dict(zip(examples, given))) if by_name else engine(*given)
        return returned if isinstance(returned, torch.Tensor) else returned[0]

    return Job(path.parent.name, model, inputs, call)


def llama(name: str, device: torch.device) -> Job:
    import transformers.models.llama.modeling_llama as modeling
    from transformers import LlamaConfig, LlamaForCausalLM

    # Without padding the mask is causal and nothing else: attention then gets none, and keeps its flash kernel.
    modeling.create_causal_mask = lambda *_, **__: None
    config = LlamaConfig(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=True,
        use_cache=False,
        attn_implementation="sdpa",
    )
    with device:
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    return Job(
        name,
        model,
        lambda generator: [tokens_below(config.vocab_size, SHAPES[name], device, generator)],
        lambda engine, given: engine(input_ids=given[0], labels=given[0]).loss,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="llama-3.2-1b, own, or a workload's model.py")
    parser.add_argument("--mode", choices=["default", "gathers", "record", "plan", "eager"], required=True)
    parser.add_argument("--stage", type=int, default=3, help="1 and 2: modes default and eager")
    parser.add_argument("--plan", default="")
    parser.add_argument("--folder", default="", help="of the recording")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--predicted", default="", help="of dc-sim simulate --json: measures more steps beside it, unwatched")
    parser.add_argument("--measured", default="", help="what they are written to")
    parser.add_argument("--trace", default="", help="folder for a trace of one more step, by PyTorch's profiler, of each rank")
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def make_engine(model: nn.Module, batch: int, stage: int, deepcompile: bool) -> Any:
    import deepspeed

    config = {
        "train_micro_batch_size_per_gpu": batch,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
        "gradient_clipping": 0.0,
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "compile": {"deepcompile": deepcompile},
    }
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    return deepspeed.initialize(model=model, model_parameters=list(model.parameters()), optimizer=optimizer, config=config)[0]


def compile_engine(engine: Any, arguments: argparse.Namespace) -> None:
    import dcsim_deepspeed

    if arguments.mode == "plan":
        dcsim_deepspeed.compile(engine, arguments.plan)
    elif arguments.mode == "record":
        dcsim_deepspeed.record(engine, arguments.folder)
    elif arguments.mode == "gathers":
        engine.compile(schedule=[(0, ["zero3_compile"])])
    elif arguments.mode == "default":
        engine.compile()


# Functions of DeepSpeed's optimizers that a step calls, by what they do on the host.
HOST_PHASES = (
    "has_overflow",
    "get_grad_norm_direct",
    "_pre_step",
    "_partition_all_parameters",
    "unscale_and_clip_grads",
    "_optimizer_step",
    "_post_step",
    "step",
)


class HostClock:
    """When the host enters and leaves each phase of a step, in ms from the step's start, without a profiler."""

    def __init__(self, engine: Any) -> None:
        self.started = 0.0
        self.spans: dict[str, list[tuple[float, float]]] = {}
        for name in HOST_PHASES:
            if inner := getattr(engine.optimizer, name, None):
                setattr(engine.optimizer, name, self.timed(name, inner))

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            entered = time.perf_counter()
            result = call(*given, **named)
            left = time.perf_counter()
            self.spans.setdefault(name, []).append(((entered - self.started) * 1e3, (left - self.started) * 1e3))
            return result

        return run

    def medians(self) -> dict[str, list[float]]:
        ends = {name: [statistics.median(each) for each in zip(*spans)] for name, spans in self.spans.items()}
        return {name: [round(each, 2) for each in pair] for name, pair in sorted(ends.items(), key=lambda item: item[1])}


def train(engine: Any, step: Callable[[], torch.Tensor], steps: int, clock: HostClock) -> dict[str, Any]:
    """Each step's time with the GPU at rest before and behind it, and losses; memory behind the warm-up."""
    times, losses = [], []
    for index in range(steps):
        if index == WARM_UP:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            clock.spans.clear()
        torch.cuda.synchronize()
        dist.barrier()
        started = clock.started = time.perf_counter()
        loss = step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3)
        losses.append(loss.detach())
    measured = times[WARM_UP + 1 :]  # the first one behind the warm-up fills the allocator's cache anew
    return {
        "step_ms": round(statistics.median(measured), 3),
        "least_step_ms": round(min(measured), 3),
        "most_step_ms": round(max(measured), 3),
        "first_steps_ms": [round(each, 1) for each in times[:WARM_UP]],
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "losses": [round(float(loss), 6) for loss in losses],
    }


def train_unwatched(engine: Any, step: Callable[[], torch.Tensor], predicted: str, measured: str) -> dict[str, float]:
    """Step behind step, as users train: nothing waits for the GPU in between. Gives the GPU's clock and power, of further
    steps: who reads them holds locks that launches need."""
    import dcsim_deepspeed

    skip, steps, with_clock = 3, 20, 15
    dcsim_deepspeed.measure(engine, measured, predicted, steps, skip)
    for _ in range(skip + steps):
        step()
    with GpuClock() as clock:
        for _ in range(with_clock):
            step()
        torch.cuda.synchronize()
    return clock.result()


def describe(engine: Any, arguments: argparse.Namespace, name: str, shape: torch.Size) -> dict[str, Any]:
    import deepspeed
    import transformers

    return {
        "model": name,
        "mode": arguments.mode,
        "stage": arguments.stage,
        "gpus": dist.get_world_size(),
        "batch": shape[0],
        "sequence": shape[1] if len(shape) > 1 else None,
        "parameters": sum(getattr(each, "ds_numel", each.numel()) for each in engine.module.parameters()),
        "gpu": torch.cuda.get_device_name(),
        "versions": {
            "torch": torch.__version__,
            "deepspeed": deepspeed.__version__,
            "transformers": transformers.__version__,
            "python": sys.version.split()[0],
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        },
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": " ".join(sys.argv[1:]),
    }


def main() -> None:
    arguments = parse()
    import deepspeed

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    deepspeed.init_distributed(dist_backend="nccl", verbose=False)
    job = make_job(arguments.model, device)
    generator = torch.Generator(device=device).manual_seed(1234 + dist.get_rank())
    given = job.inputs(generator)
    shape = given[0].shape
    engine = make_engine(job.model.train(), shape[0], arguments.stage, arguments.mode != "eager")
    compile_engine(engine, arguments)

    clock = HostClock(engine)
    forward = clock.timed("forward", lambda: job.call(engine, given))
    backward = clock.timed("backward", engine.backward)

    def step() -> torch.Tensor:
        loss = forward()
        backward(loss)
        engine.step()
        return loss

    measured = train(engine, step, arguments.steps, clock)
    host: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(host, clock.medians())
    measured["host_ms"] = host
    peaks: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(peaks, (measured["peak_allocated_bytes"], measured["peak_reserved_bytes"]))
    measured["peak_allocated_bytes"], measured["peak_reserved_bytes"] = map(max, zip(*peaks))
    if arguments.predicted:
        measured["clock"] = train_unwatched(engine, step, arguments.predicted, arguments.measured)
    if dist.get_rank() == 0:
        report = getattr(engine, "dcsim_report", None)
        line = {**describe(engine, arguments, job.name, shape), **measured, "report": report.to_json() if report else None}
        with open(arguments.out, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        print(report or "DeepSpeed's own schedule", flush=True)
    if arguments.trace:
        Path(arguments.trace).mkdir(parents=True, exist_ok=True)
        mode = Path(arguments.plan).stem if arguments.plan else arguments.mode
        of_what = f"{job.name}-stage{arguments.stage}-{mode}-rank{dist.get_rank()}"
        trace_step(step, str(Path(arguments.trace) / f"{of_what}.json.gz"))
    dist.barrier()
    sys.stdout.flush()
    report = getattr(engine, "dcsim_report", None)
    os._exit(1 if arguments.mode == "plan" and not report.applied else 0)  # Inductor's compilers may hold the interpreter


if __name__ == "__main__":
    main()
