"""Gemma 2 2B: attention written out, for its scores are capped; windows in every other layer, 256,000 words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import Gemma2Config, Gemma2ForCausalLM

BATCH, SEQUENCE = 2, 2048


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Gemma2Config(
            vocab_size=256_000,
            hidden_size=2304,
            intermediate_size=9216,
            num_hidden_layers=26,
            num_attention_heads=8,
            num_key_value_heads=4,
            head_dim=256,
            sliding_window=1024,
            attn_logit_softcapping=50.0,
            final_logit_softcapping=30.0,
            query_pre_attn_scalar=256,
        )
        self.model = Gemma2ForCausalLM._from_config(config, attn_implementation="eager")
        self.model.loss_type = "ForCausalLM"

    def forward(self, words: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=words, use_cache=False).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    return LanguageModel().train(), {"words": torch.zeros(batch, sequence, dtype=torch.int64)}
