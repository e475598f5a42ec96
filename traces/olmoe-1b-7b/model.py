"""OLMoE-1B-7B: 64 experts in each layer, 8 of them for each token, all in grouped matrix products."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import OlmoeConfig, OlmoeForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = OlmoeConfig(
            vocab_size=50304,
            hidden_size=2048,
            intermediate_size=1024,
            num_hidden_layers=16,
            num_attention_heads=16,
            num_key_value_heads=16,
            num_experts=64,
            num_experts_per_tok=8,
            max_position_embeddings=4096,
            use_cache=False,
        )
        self.model = OlmoeForCausalLM._from_config(config, attn_implementation="sdpa", experts_implementation="grouped_mm")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
