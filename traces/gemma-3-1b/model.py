"""Gemma 3 1B: five layers that see 512 words back for each that sees all, heads of 256, 262,144 words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Gemma3TextConfig(
            vocab_size=262144,
            hidden_size=1152,
            intermediate_size=6912,
            num_hidden_layers=26,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=256,
            sliding_window=512,
            max_position_embeddings=32768,
            use_cache=False,
        )
        self.model = Gemma3ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
