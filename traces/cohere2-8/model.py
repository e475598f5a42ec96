"""Eight layers of Command R7B (Cohere 2): attention beside the MLP, three sliding windows to one whole, a vocabulary of 256,000."""

import torch
from torch import Tensor, nn
from transformers import Cohere2Config, Cohere2ForCausalLM

BATCH, LENGTH, WORDS = 2, 2048, 256000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = Cohere2Config(
        vocab_size=WORDS,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=8,
        num_attention_heads=32,
        num_key_value_heads=8,
        use_cache=False,
    )
    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return Cohere2ForCausalLM(config).train(), {"input_ids": words, "labels": words.clone()}
