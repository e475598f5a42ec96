"""ConvNeXt V2 base (arXiv 2301.00808): convolutions of each channel of 7 x 7, products over channels, responses normalised over the image."""

import torch
from torch import Tensor, nn
from transformers import ConvNextV2Config, ConvNextV2ForImageClassification

BATCH, SIZE, CLASSES = 64, 224, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = ConvNextV2Config(
            hidden_sizes=[128, 256, 512, 1024],
            depths=[3, 3, 27, 3],
            drop_path_rate=0.0,
            num_labels=CLASSES,
        )
        self.model = ConvNextV2ForImageClassification._from_config(config)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.model(pixel_values=images, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
