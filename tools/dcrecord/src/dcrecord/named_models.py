"""Workloads of the named architectures."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from dcrecord.architectures import Architecture, LinearStack
from dcrecord.building import Builder, build_without_weights
from dcrecord.errors import RecorderError
from dcrecord.options import Options
from dcrecord.workload import Fill, Workload, call_by_position

# Every probability of dropping something in the families above.
_NO_DROPOUT = {"attention_dropout": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}


def named_workload(
    architecture: Architecture | LinearStack, options: Options, builder: Builder = build_without_weights
) -> Workload:
    """The workload of an architecture; options without batch or sequence take the architecture's own.

    builder   how modules are built: without memory for their weights, unless somebody wants to run them
    """
    batch = options.batch or architecture.batch
    sequence = options.sequence or architecture.sequence
    _check_sequence(architecture, sequence)
    if isinstance(architecture, LinearStack):
        return _linear_stack(architecture, batch * sequence, options, builder)
    return _language_model(architecture, batch, sequence, options, builder)


def _check_sequence(architecture: Architecture | LinearStack, sequence: int) -> None:
    if isinstance(architecture, LinearStack):
        return
    most = architecture.config.get("n_positions", architecture.config.get("max_position_embeddings", sequence))
    if sequence > most:
        raise RecorderError(f"--seq {sequence}: {architecture.name} has positions for at most {most} tokens")


def _linear_stack(stack: LinearStack, rows: int, options: Options, builder: Builder) -> Workload:
    def build() -> nn.Module:
        return nn.Sequential(*[nn.Linear(stack.width, stack.width, bias=False) for _ in range(stack.depth)])

    body, unknown = builder(build, options.torch_dtype)
    rows_of_input = torch.zeros(rows, stack.width, dtype=options.torch_dtype, device="meta")
    return Workload(stack.name, body, call_by_position, {"input": rows_of_input}, {"input": Fill()}, rows, unknown)


def _language_model(
    architecture: Architecture, batch: int, sequence: int, options: Options, builder: Builder
) -> Workload:
    model_class, config_class = transformers_classes(architecture.family)
    dropout = {name: value for name, value in _NO_DROPOUT.items() if hasattr(config_class(), name)}

    def build() -> nn.Module:
        config = config_class(**{**architecture.config, **dropout})
        model = model_class._from_config(config, dtype=options.torch_dtype, attn_implementation="sdpa")
        model.loss_type = "ForCausalLM"  # what is meant anyway; unset, GPT-2 logs a warning, which cannot be traced
        return model.train()

    body, unknown = builder(build, options.torch_dtype)
    tokens = torch.zeros(batch, sequence, dtype=torch.int64)
    fill = Fill(vocabulary=architecture.config["vocab_size"])
    return Workload(
        architecture.name, body, call_language_model, {"input_ids": tokens}, {"input_ids": fill}, batch * sequence, unknown
    )


def call_language_model(body: nn.Module, input_ids: torch.Tensor) -> Any:
    """Next-token loss of a transformers model, which shifts the labels itself."""
    return body(input_ids=input_ids, labels=input_ids, use_cache=False)


def transformers_classes(family: str) -> tuple[Any, Any]:
    """Model and configuration class of a family."""
    import transformers

    return {
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
        "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config),
        "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig),
        "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config),
    }[family]
