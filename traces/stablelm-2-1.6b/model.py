"""Stable LM 2 1.6B (arXiv 2402.17834): layer norms, biases for queries, keys and values, a quarter of each head rotated."""

import torch
from torch import Tensor, nn
from transformers import StableLmConfig, StableLmForCausalLM

BATCH, LENGTH, WORDS = 4, 2048, 100352


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = StableLmConfig(
        vocab_size=WORDS,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=32,
        use_qkv_bias=True,
        partial_rotary_factor=0.25,
        use_cache=False,
    )
    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return StableLmForCausalLM(config).train(), {"input_ids": words, "labels": words.clone()}
