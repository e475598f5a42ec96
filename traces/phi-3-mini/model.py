"""Phi-3-mini: one product for queries, keys and values, one for gate and up, heads of 96, no window."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import Phi3Config, Phi3ForCausalLM

BATCH, SEQUENCE = 1, 4096


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Phi3Config(
            vocab_size=32064,
            hidden_size=3072,
            intermediate_size=8192,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=32,
            sliding_window=None,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attention_dropout=0.0,
            pad_token_id=0,
        )
        self.model = Phi3ForCausalLM._from_config(config, attn_implementation="sdpa")
        self.model.loss_type = "ForCausalLM"

    def forward(self, words: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=words, use_cache=False).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    return LanguageModel().train(), {"words": torch.zeros(batch, sequence, dtype=torch.int64)}
