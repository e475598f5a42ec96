"""BLOOM-1b7: a bias on the distance of words in place of positions, so attention is written out; 250,880 words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import BloomConfig, BloomForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = BloomConfig(
            vocab_size=250880,
            hidden_size=2048,
            n_layer=24,
            n_head=16,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            use_cache=False,
        )
        self.model = BloomForCausalLM(config)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
