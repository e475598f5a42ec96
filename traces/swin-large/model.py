"""Swin-L (arXiv 2103.14030): images in windows of 7 x 7 patches, shifted by half a window in every other block, four stages
of 192 to 1,536 channels; attention in 49 positions with a learnt bias and, where windows are shifted, a mask.
"""

import torch
from torch import Tensor, nn
from transformers import SwinConfig, SwinForImageClassification

BATCH, SIZE, CLASSES = 32, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = SwinConfig(
            image_size=SIZE,
            patch_size=4,
            embed_dim=192,
            depths=[2, 2, 18, 2],
            num_heads=[6, 12, 24, 48],
            window_size=7,
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = SwinForImageClassification(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
