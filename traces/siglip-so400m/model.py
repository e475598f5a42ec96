"""The image encoder of SigLIP So400m (arXiv 2303.15343): 27 layers of 1,152 channels, heads of 72, 729 patches of 14 x 14."""

import torch
from torch import Tensor, nn
from transformers import SiglipConfig, SiglipForImageClassification

BATCH, SIZE, CLASSES = 16, 384, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = SiglipConfig(
            vision_config={
                "hidden_size": 1152,
                "intermediate_size": 4304,
                "num_hidden_layers": 27,
                "num_attention_heads": 16,
                "patch_size": 14,
                "image_size": SIZE,
            },
            num_labels=CLASSES,
        )
        self.model = SiglipForImageClassification._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
