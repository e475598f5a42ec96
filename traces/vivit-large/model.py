"""ViViT (arXiv 2103.15691) of ViT-L's size: clips of 32 frames in patches of 2 x 16 x 16, 3,136 a clip."""

import torch
from torch import Tensor, nn
from transformers import VivitConfig, VivitForVideoClassification

BATCH, SIZE, CLASSES = 4, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = VivitConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            num_labels=CLASSES,
        )
        self.model = VivitForVideoClassification._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 32, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
