"""BEiT large (arXiv 2106.08254): 24 layers of 1,024 channels over patches, relative positions added to the scores, a learned scale behind each branch."""

import torch
from torch import Tensor, nn
from transformers import BeitConfig, BeitForImageClassification

BATCH, SIZE, CLASSES = 32, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = BeitConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            use_relative_position_bias=True,
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = BeitForImageClassification._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
