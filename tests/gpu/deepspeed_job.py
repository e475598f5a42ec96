#!/usr/bin/env python3
"""One DeepSpeed job on GPUs, launched by torchrun: trains, and rank 0 appends what it measured to a file, a line of JSON.

    torchrun --nproc_per_node=N tests/gpu/deepspeed_job.py --model own --mode plan --plan best.json --out results.jsonl

Modes: default (DeepCompile's own schedule: gathers at use, from step 5 on prefetching and selective gathers), gathers (at
use to the end), record (as default, and its graphs are written), plan.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

MODELS = ("llama-3.2-1b", "own")
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


def build(name: str, device: torch.device) -> tuple[nn.Module, int, Callable[[Any, torch.Tensor], torch.Tensor]]:
    """The model with random weights, its vocabulary, and how a step calls the engine."""
    torch.manual_seed(0)
    if name == "own":
        with device:
            return OwnModel().to(torch.bfloat16), 32_000, lambda engine, tokens: engine(tokens, tokens.roll(-1, 1))[0]
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
    return model, config.vocab_size, lambda engine, tokens: engine(input_ids=tokens, labels=tokens).loss


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--mode", choices=["default", "gathers", "record", "plan"], required=True)
    parser.add_argument("--stage", type=int, default=3, help="1 and 2: mode default")
    parser.add_argument("--plan", default="")
    parser.add_argument("--folder", default="", help="of the recording")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--out", required=True)
    return parser.parse_args()


def make_engine(model: nn.Module, batch: int, stage: int) -> Any:
    import deepspeed

    config = {
        "train_micro_batch_size_per_gpu": batch,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
        "gradient_clipping": 0.0,
        "steps_per_print": 10**9,
        "zero_allow_untested_optimizer": True,
        "compile": {"deepcompile": True},
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
    else:
        engine.compile()


def train(engine: Any, step: Callable[[], torch.Tensor], steps: int) -> dict[str, Any]:
    """Each step's time with the GPU at rest before and behind it, and losses; memory behind the warm-up."""
    times, losses = [], []
    for index in range(steps):
        if index == WARM_UP:
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
        dist.barrier()
        started = time.perf_counter()
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


def describe(engine: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    import deepspeed
    import transformers

    return {
        "model": arguments.model,
        "mode": arguments.mode,
        "stage": arguments.stage,
        "gpus": dist.get_world_size(),
        "batch": SHAPES[arguments.model][0],
        "sequence": SHAPES[arguments.model][1],
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
    batch, length = SHAPES[arguments.model]
    model, vocabulary, call = build(arguments.model, device)
    engine = make_engine(model.train(), batch, arguments.stage)
    compile_engine(engine, arguments)
    generator = torch.Generator(device=device).manual_seed(1234 + dist.get_rank())
    tokens = torch.randint(0, vocabulary, (batch, length), device=device, generator=generator)

    def step() -> torch.Tensor:
        loss = call(engine, tokens)
        engine.backward(loss)
        engine.step()
        return loss

    measured = train(engine, step, arguments.steps)
    peaks: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(peaks, (measured["peak_allocated_bytes"], measured["peak_reserved_bytes"]))
    measured["peak_allocated_bytes"], measured["peak_reserved_bytes"] = map(max, zip(*peaks))
    if dist.get_rank() == 0:
        report = getattr(engine, "dcsim_report", None)
        line = {**describe(engine, arguments), **measured, "report": report.to_json() if report else None}
        with open(arguments.out, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        print(report or "DeepSpeed's own schedule", flush=True)
    dist.barrier()
    sys.stdout.flush()
    report = getattr(engine, "dcsim_report", None)
    os._exit(1 if arguments.mode == "plan" and not report.applied else 0)  # Inductor's compilers may hold the interpreter


if __name__ == "__main__":
    main()
