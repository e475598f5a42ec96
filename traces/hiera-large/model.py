"""Hiera-L (arXiv 2306.00989): images in four stages of 144 to 1,152 channels, attention within windows, then over all patches."""

import torch
from torch import Tensor, nn
from transformers import HieraConfig, HieraForImageClassification

BATCH, SIZE, CLASSES = 32, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = HieraConfig(
            embed_dim=144,
            depths=[2, 6, 36, 4],
            num_heads=[2, 4, 8, 16],
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = HieraForImageClassification(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
