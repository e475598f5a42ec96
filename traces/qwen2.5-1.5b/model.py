"""Qwen2.5 1.5B: biases in the projections of queries, keys and values, twelve heads on two key heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import Qwen2Config, Qwen2ForCausalLM

BATCH, SEQUENCE = 2, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Qwen2Config(
            vocab_size=151_936,
            hidden_size=1536,
            intermediate_size=8960,
            num_hidden_layers=28,
            num_attention_heads=12,
            num_key_value_heads=2,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = Qwen2ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
