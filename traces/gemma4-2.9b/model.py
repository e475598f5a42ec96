"""A dense Gemma 4 of 30 layers, five of which in six look at 512 words, without the inputs per layer."""

import torch
from torch import Tensor, nn
from transformers import Gemma4ForCausalLM, Gemma4TextConfig

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Gemma4TextConfig(
            hidden_size_per_layer_input=0,
            vocab_size_per_layer_input=0,
            use_cache=False,
        )
        self.model = Gemma4ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
