"""What transformers does at a model's first call, or only when it is traced, leaves no trace in a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from conftest import PLAIN, operators, record_module
from dcrecord.transformers_attention import leave_out_masks
from test_bare_modules import TOLERANCE, run_document
from torch import nn
from transformers import (
    DPTConfig,
    DPTForDepthEstimation,
    GPTJConfig,
    GPTJForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

WORDS = torch.arange(16).view(2, 8) % 10


class Words(nn.Module):
    """GPT-J, whose attention is written out: it adds the causal mask to the scores."""

    def __init__(self) -> None:
        super().__init__()
        config = GPTJConfig(
            vocab_size=10,
            n_positions=8,
            n_embd=16,
            n_layer=2,
            n_head=2,
            rotary_dim=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
        )
        self.model = GPTJForCausalLM(config)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.model(words, labels=words).loss


class Depths(nn.Module):
    """DPT, which collects hidden states by hooks that are installed under a lock."""

    def __init__(self) -> None:
        super().__init__()
        config = DPTConfig(
            hidden_size=16,
            num_hidden_layers=4,
            num_attention_heads=2,
            intermediate_size=16,
            image_size=16,
            patch_size=8,
            backbone_out_indices=[0, 1, 2, 3],
            neck_hidden_sizes=[4, 4, 4, 4],
            fusion_hidden_size=4,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = DPTForDepthEstimation(config)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.model(pixel_values=images).predicted_depth.square().mean()


def test_attention_that_is_written_out_keeps_its_causal_mask() -> None:
    torch.manual_seed(0)
    module = Words()
    nn.init.normal_(module.model.lm_head.weight)  # so that losses tell what was attended to
    document = record_module(Words, WORDS)
    loss, _ = run_document(document, module, [WORDS])
    torch.testing.assert_close(loss, module(WORDS).detach(), rtol=TOLERANCE, atol=0)
    assert "aten::le.Tensor" in operators(document, "forward")


def test_hooks_that_collect_hidden_states_are_there_before_the_trace() -> None:
    assert operators(record_module(Depths, torch.zeros(2, 3, 16, 16)), "forward").count("aten::convolution") > 4


class Llama(nn.Module):
    """Llama in the dtype of flash attention."""

    def __init__(self) -> None:
        super().__init__()
        config = LlamaConfig(
            vocab_size=10,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
        self.model = LlamaForCausalLM(config).to(torch.bfloat16)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.model(words, labels=words, use_cache=False).loss


def test_masks_that_hide_nothing_are_recorded_where_asked_for() -> None:
    options = replace(PLAIN, attention="auto", dtype="bfloat16")
    plain = operators(record_module(Llama, WORDS, options=options), "forward")
    assert "aten::le.Tensor" not in plain
    masked = operators(record_module(Llama, WORDS, options=options, build_masks=True), "forward")
    assert "aten::le.Tensor" in masked
    assert masked.count("aten::mm") == plain.count("aten::mm")


def masks_compiled(module: nn.Module) -> list[bool]:
    """By graph that torch.compile makes in three calls: whether its attention has a mask."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(module, backend=keep)
    for _ in range(3):
        compiled(WORDS)
    return [
        any(
            node.kwargs.get("attn_mask") is not None
            for node in graph.graph.nodes
            if node.target is torch.nn.functional.scaled_dot_product_attention
        )
        for graph in graphs
    ]


def test_masks_are_left_out_of_jobs_that_ask_for_it_and_compile_once() -> None:
    module = Llama()
    assert masks_compiled(module) == [True]
    with leave_out_masks(module):
        assert masks_compiled(module) == [False]
    assert masks_compiled(module) == [True]
