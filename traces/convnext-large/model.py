"""ConvNeXt-large on images of 224 x 224: convolutions of 7 x 7 for each channel alone, then two matrix products."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import ConvNextConfig, ConvNextForImageClassification

BATCH = 64


class Classes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = ConvNextConfig(
            depths=[3, 3, 27, 3], hidden_sizes=[192, 384, 768, 1536], drop_path_rate=0.0, num_labels=1000, image_size=224
        )
        self.model = ConvNextForImageClassification(config)

    def forward(self, images: Tensor, classes: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=classes).loss


def build(batch: int = BATCH) -> tuple[nn.Module, dict[str, Tensor]]:
    return Classes().train(), {"images": torch.zeros(batch, 3, 224, 224), "classes": torch.zeros(batch, dtype=torch.int64)}
