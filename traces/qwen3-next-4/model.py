"""Qwen3-Next, four of its 48 layers, 64 of its 512 experts: three layers of gated delta rule to one of gated attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Qwen3NextConfig(
            vocab_size=151_936,
            hidden_size=2048,
            num_hidden_layers=4,
            num_attention_heads=16,
            num_key_value_heads=2,
            head_dim=256,
            num_experts=64,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
            use_cache=False,
        )
        self.model = Qwen3NextForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
