"""XLNet large: each word sees words by relative position, whose scores are products of their own, shifted row by row."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import XLNetConfig, XLNetForSequenceClassification

BATCH, SEQUENCE = 16, 512


class Class(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = XLNetConfig(
            vocab_size=32_000,
            d_model=1024,
            n_layer=24,
            n_head=16,
            d_inner=4096,
            dropout=0.0,
            summary_last_dropout=0.0,
            num_labels=2,
        )
        self.model = XLNetForSequenceClassification(config).to(torch.get_default_dtype())  # parts are made in float32

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels, use_mems=False).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    return Class().train(), {
        "words": torch.zeros(batch, sequence, dtype=torch.int64),
        "labels": torch.ones(batch, dtype=torch.int64),
    }
