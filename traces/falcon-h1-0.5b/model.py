"""Falcon-H1 0.5B: attention and state spaces of Mamba-2 beside each other in each of 36 layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import FalconH1Config, FalconH1ForCausalLM

BATCH, SEQUENCE = 1, 1024


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = FalconH1Config(
            vocab_size=32_768,
            hidden_size=1024,
            intermediate_size=2048,
            num_hidden_layers=36,
            num_attention_heads=8,
            num_key_value_heads=2,
            head_dim=64,
            mamba_d_ssm=1536,
            mamba_n_heads=24,
            mamba_d_head=64,
            mamba_n_groups=1,
            mamba_d_state=128,
            mamba_chunk_size=128,
            use_cache=False,
        )
        self.model = FalconH1ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
