"""Falcon 7B: attention and feed-forward beside each other, 71 heads that share one key head."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import FalconConfig, FalconForCausalLM

BATCH, SEQUENCE = 1, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = FalconConfig(
            vocab_size=65_024,
            hidden_size=4544,
            num_hidden_layers=32,
            num_attention_heads=71,
            multi_query=True,
            parallel_attn=True,
            bias=False,
            alibi=False,
            new_decoder_architecture=False,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = FalconForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
