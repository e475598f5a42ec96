"""LFM2 1.2B: ten short convolutions over words between six attention layers of 2,048 channels."""

import torch
from torch import Tensor, nn
from transformers import Lfm2Config, Lfm2ForCausalLM

BATCH, SEQUENCE = 2, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Lfm2Config(
            vocab_size=65_536,
            hidden_size=2048,
            intermediate_size=12_288,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            layer_types=["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)],
            use_cache=False,
        )
        self.model = Lfm2ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
