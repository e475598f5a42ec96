"""FocalNet base (arXiv 2203.11926): four stages of 128 to 1,024 channels, context gathered by convolutions of each channel in place of attention."""

import torch
from torch import Tensor, nn
from transformers import FocalNetConfig, FocalNetForImageClassification

BATCH, SIZE, CLASSES = 64, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = FocalNetConfig(
            embed_dim=128,
            depths=[2, 2, 18, 2],
            focal_levels=[3, 3, 3, 3],
            focal_windows=[3, 3, 3, 3],
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = FocalNetForImageClassification._from_config(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
