"""RegNetY-16GF (arXiv 2003.13678): convolutions in groups of 112 channels, squeeze and excitation, batch norms."""

import torch
from torch import Tensor, nn
from transformers import RegNetConfig, RegNetForImageClassification

BATCH, SIZE, CLASSES = 128, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = RegNetConfig(
        depths=[2, 4, 11, 1], hidden_sizes=[224, 448, 1232, 3024], groups_width=112, layer_type="y", num_labels=CLASSES
    )
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    return RegNetForImageClassification(config).train(), {"pixel_values": images, "labels": torch.zeros(BATCH, dtype=torch.long)}
