"""Mamba-2 of 780 M parameters (arXiv 2405.21060): state spaces in chunks of 256 words, written in plain PyTorch."""

import torch
from torch import Tensor, nn
from transformers import Mamba2Config, Mamba2ForCausalLM

BATCH, SEQUENCE = 1, 1024


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Mamba2Config(
            vocab_size=50_288,
            hidden_size=1536,
            num_hidden_layers=48,
            num_heads=48,
            head_dim=64,
            state_size=128,
            n_groups=1,
            expand=2,
            chunk_size=256,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = Mamba2ForCausalLM(config)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
