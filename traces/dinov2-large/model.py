"""DINOv2 large (arXiv 2304.07193): 24 layers of 1,024 channels over patches of 14 x 14, a learned scale behind each branch."""

import torch
from torch import Tensor, nn
from transformers import Dinov2Config, Dinov2ForImageClassification

BATCH, SIZE, CLASSES = 64, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Dinov2Config(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            patch_size=14,
            image_size=224,
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = Dinov2ForImageClassification._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
