"""Four layers of GLM-4.7-Flash: latent attention with values of 256, 64 experts chosen by sigmoids, four of them for each token."""

import torch
from torch import Tensor, nn
from transformers import Glm4MoeLiteConfig, Glm4MoeLiteForCausalLM

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Glm4MoeLiteConfig(
            num_hidden_layers=4,
            use_cache=False,
        )
        self.model = Glm4MoeLiteForCausalLM._from_config(config, attn_implementation="sdpa", experts_implementation="grouped_mm")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
