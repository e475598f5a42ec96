"""ModernBERT-large trained to fill in masked words: most layers see 128 words around a word, every third all of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import ModernBertConfig, ModernBertForMaskedLM

BATCH, SEQUENCE = 8, 1024


class MaskedWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = ModernBertConfig(
            vocab_size=50368,
            hidden_size=1024,
            intermediate_size=2624,
            num_hidden_layers=28,
            num_attention_heads=16,
            max_position_embeddings=8192,
            local_attention=128,
            global_attn_every_n_layers=3,
            attention_dropout=0.0,
            embedding_dropout=0.0,
            mlp_dropout=0.0,
            classifier_dropout=0.0,
            reference_compile=False,
        )
        self.model = ModernBertForMaskedLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return MaskedWords().train(), {"words": words, "labels": words.clone()}
