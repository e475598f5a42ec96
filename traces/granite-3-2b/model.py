"""Granite 3 2B: 40 layers of 2,048 channels, multipliers of embeddings, branches and scores."""

import torch
from torch import Tensor, nn
from transformers import GraniteConfig, GraniteForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GraniteConfig(
            vocab_size=49_155,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=40,
            num_attention_heads=32,
            num_key_value_heads=8,
            max_position_embeddings=4096,
            embedding_multiplier=12.0,
            residual_multiplier=0.22,
            attention_multiplier=0.015625,
            logits_scaling=8.0,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = GraniteForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
