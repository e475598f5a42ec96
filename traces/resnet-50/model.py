"""ResNet-50 (arXiv 1512.03385): 53 convolutions, each with a batch norm."""

import torch
from torch import Tensor, nn
from transformers import ResNetConfig, ResNetForImageClassification

BATCH, SIZE, CLASSES = 256, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    model = ResNetForImageClassification(ResNetConfig(num_labels=CLASSES))
    return model, {"pixel_values": torch.zeros(BATCH, 3, SIZE, SIZE), "labels": torch.zeros(BATCH, dtype=torch.long)}
