"""PVTv2-B3 (arXiv 2106.13797): attention over shrunken keys in four stages, a convolution of each channel in every feed-forward."""

import torch
from torch import Tensor, nn
from transformers import PvtV2Config, PvtV2ForImageClassification

BATCH, SIZE, CLASSES = 64, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = PvtV2Config(
            hidden_sizes=[64, 128, 320, 512],
            depths=[3, 4, 18, 3],
            num_attention_heads=[1, 2, 5, 8],
            mlp_ratios=[8, 8, 4, 4],
            sr_ratios=[8, 4, 2, 1],
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = PvtV2ForImageClassification._from_config(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
