"""GPT-Neo 1.3B: attention written out in float32, every other layer over the last 256 words only."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import GPTNeoConfig, GPTNeoForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GPTNeoConfig(
            vocab_size=50_257,
            hidden_size=2048,
            num_layers=24,
            num_heads=16,
            attention_types=[[["global", "local"], 12]],
            window_size=256,
            max_position_embeddings=2048,
            resid_dropout=0.0,
            embed_dropout=0.0,
            attention_dropout=0.0,
            use_cache=False,
        )
        self.model = GPTNeoForCausalLM(config)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
