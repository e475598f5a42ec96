"""Swin Transformer V2 large (arXiv 2111.09883): windows of 16 x 16, attention by cosines, biases from a small network."""

import torch
from torch import Tensor, nn
from transformers import Swinv2Config, Swinv2ForImageClassification

BATCH, SIZE, CLASSES = 32, 256, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Swinv2Config(
            image_size=SIZE,
            embed_dim=192,
            depths=[2, 2, 18, 2],
            num_heads=[6, 12, 24, 48],
            window_size=16,
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = Swinv2ForImageClassification._from_config(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
