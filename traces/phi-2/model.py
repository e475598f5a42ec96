"""Phi-2 of 2.8 billion parameters: attention and MLP side by side behind one layer norm, biases everywhere, heads of 80."""

import torch
from torch import Tensor, nn
from transformers import PhiConfig, PhiForCausalLM

BATCH, LENGTH, WORDS = 2, 2048, 51200


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = PhiConfig(
        vocab_size=WORDS,
        hidden_size=2560,
        intermediate_size=10240,
        num_hidden_layers=32,
        num_attention_heads=32,
        partial_rotary_factor=0.4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attention_dropout=0.0,
        use_cache=False,
    )
    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return PhiForCausalLM(config).train(), {"input_ids": words, "labels": words.clone()}
