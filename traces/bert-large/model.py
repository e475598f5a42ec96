"""BERT-large trained to fill in masked words: attention in both directions, a learned position for each token."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

BATCH, SEQUENCE = 32, 512


class MaskedWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = BertConfig(
            vocab_size=30522,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = BertForMaskedLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return MaskedWords().train(), {"words": words, "labels": words.clone()}
