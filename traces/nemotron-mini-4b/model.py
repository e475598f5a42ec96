"""Nemotron mini 4B (arXiv 2407.14679): 32 layers of 3,072 channels, squared ReLU, layer norms with one added to their weights, a vocabulary of 256,000."""

import torch
from torch import Tensor, nn
from transformers import NemotronConfig, NemotronForCausalLM

BATCH, SEQUENCE = 1, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = NemotronConfig(
            vocab_size=256_000,
            hidden_size=3072,
            intermediate_size=9216,
            num_hidden_layers=32,
            num_attention_heads=24,
            num_key_value_heads=8,
            head_dim=128,
            max_position_embeddings=4096,
            use_cache=False,
        )
        self.model = NemotronForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
