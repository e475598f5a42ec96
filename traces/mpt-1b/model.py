"""MPT of 1.3 billion parameters (mosaicml/mpt-1b-redpajama's sizes): linear biases for positions, attention written out."""

import torch
from torch import Tensor, nn
from transformers import MptConfig, MptForCausalLM

BATCH, LENGTH, WORDS = 4, 1024, 50432


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = MptConfig(d_model=2048, n_heads=16, n_layers=24, max_seq_len=2048, vocab_size=WORDS, use_cache=False)
        self.model = MptForCausalLM(config)

    def forward(self, words: Tensor) -> Tensor:
        return self.model(words, attention_mask=torch.ones_like(words), labels=words).loss


def build() -> tuple[nn.Module, Tensor]:
    return Model().train(), torch.zeros(BATCH, LENGTH, dtype=torch.long)
