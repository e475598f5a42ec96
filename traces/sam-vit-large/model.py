"""The image encoder of SAM, ViT large: windows of 14 x 14 tokens and four layers that see all 4,096, positions as products added to scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import SamVisionConfig, SamVisionModel

BATCH, SIZE = 1, 1024


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = SamVisionConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            global_attn_indexes=[5, 11, 17, 23],
            mlp_dim=4096,
        )
        self.model = SamVisionModel(config)

    def forward(self, image: Tensor) -> Tensor:
        return self.model(image).last_hidden_state


def build(batch: int = BATCH) -> tuple[nn.Module, Tensor]:
    return Embedding().train(), torch.zeros(batch, 3, SIZE, SIZE)
