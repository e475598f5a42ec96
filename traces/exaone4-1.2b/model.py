"""EXAONE 4.0 1.2B (arXiv 2507.11407): norms behind attention and MLP, and of queries and keys."""

import torch
from torch import Tensor, nn
from transformers import Exaone4Config, Exaone4ForCausalLM

BATCH, LENGTH, WORDS = 4, 2048, 102400


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = Exaone4Config(
        vocab_size=WORDS,
        hidden_size=2048,
        intermediate_size=4096,
        num_hidden_layers=30,
        num_attention_heads=32,
        num_key_value_heads=8,
        tie_word_embeddings=True,
        layer_types=["full_attention"] * 30,
        use_cache=False,
    )
    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return Exaone4ForCausalLM(config).train(), {"input_ids": words, "labels": words.clone()}
