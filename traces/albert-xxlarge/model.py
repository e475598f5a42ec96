"""ALBERT xxlarge: one layer of 4,096 channels, its parameters used twelve times in a forward."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AlbertConfig, AlbertForMaskedLM

BATCH, SEQUENCE = 16, 512


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = AlbertConfig(
            vocab_size=30_000,
            embedding_size=128,
            hidden_size=4096,
            num_hidden_layers=12,
            num_attention_heads=64,
            intermediate_size=16_384,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            classifier_dropout_prob=0.0,
        )
        self.model = AlbertForMaskedLM(config)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return Words().train(), {"words": words, "labels": words.clone()}
