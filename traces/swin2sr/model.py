"""Swin2SR (arXiv 2209.11345): images made twice as large, by windows of 8 x 8 with attention by cosines and pixels shuffled."""

import torch
from torch import Tensor, nn
from transformers import Swin2SRConfig, Swin2SRForImageSuperResolution

BATCH, SIZE = 16, 64


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Swin2SRConfig(
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, drop_path_rate=0.0, depths=[6, 6, 6, 6], num_heads=[6, 6, 6, 6]
        )
        self.model = Swin2SRForImageSuperResolution(config)

    def forward(self, images: Tensor, larger: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.model(images).reconstruction.float(), larger)


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, 3, 2 * SIZE, 2 * SIZE, dtype=torch.float32))
