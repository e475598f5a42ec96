"""PoolFormer M36 (arXiv 2111.11418): four stages of 96 to 768 channels, means of 3 x 3 neighbours in place of attention, group norms of one group."""

import torch
from torch import Tensor, nn
from transformers import PoolFormerConfig, PoolFormerForImageClassification

BATCH, SIZE, CLASSES = 64, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = PoolFormerConfig(
            depths=[6, 6, 18, 6],
            hidden_sizes=[96, 192, 384, 768],
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = PoolFormerForImageClassification._from_config(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
