"""Granite 3.0 1B-A400M: 32 experts in each layer, 8 of them for each token, on grouped attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import GraniteMoeConfig, GraniteMoeForCausalLM

BATCH, SEQUENCE = 4, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GraniteMoeConfig(
            vocab_size=49155,
            hidden_size=1024,
            intermediate_size=512,
            num_hidden_layers=24,
            num_attention_heads=16,
            num_key_value_heads=8,
            num_local_experts=32,
            num_experts_per_tok=8,
            max_position_embeddings=4096,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = GraniteMoeForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
