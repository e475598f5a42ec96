"""SmolLM3 3B: 36 layers of 2,048 channels, every fourth without rotary positions."""

import torch
from torch import Tensor, nn
from transformers import SmolLM3Config, SmolLM3ForCausalLM

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = SmolLM3Config(
            vocab_size=128_256,
            hidden_size=2048,
            intermediate_size=11_008,
            num_hidden_layers=36,
            num_attention_heads=16,
            num_key_value_heads=4,
            max_position_embeddings=65_536,
            use_cache=False,
        )
        self.model = SmolLM3ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
