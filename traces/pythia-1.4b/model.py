"""Pythia-1.4B (GPT-NeoX): attention and feed-forward side by side, biases everywhere, a quarter of each head rotated."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

BATCH, SEQUENCE = 4, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GPTNeoXConfig(
            vocab_size=50304,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=24,
            num_attention_heads=16,
            rotary_pct=0.25,
            use_parallel_residual=True,
            max_position_embeddings=2048,
            use_cache=False,
        )
        self.model = GPTNeoXForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
