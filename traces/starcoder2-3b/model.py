"""StarCoder2 3B (arXiv 2402.19173): 30 layers of 3,072 channels, biases everywhere, two heads of keys, windows of 4,096 words."""

import torch
from torch import Tensor, nn
from transformers import Starcoder2Config, Starcoder2ForCausalLM

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Starcoder2Config(
            vocab_size=49_152,
            hidden_size=3072,
            intermediate_size=12_288,
            num_hidden_layers=30,
            num_attention_heads=24,
            num_key_value_heads=2,
            sliding_window=4096,
            max_position_embeddings=16_384,
            residual_dropout=0.0,
            embedding_dropout=0.0,
            attention_dropout=0.0,
            use_cache=False,
        )
        self.model = Starcoder2ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
