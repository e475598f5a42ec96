"""MobileNet V1 (arXiv 1704.04861): 13 convolutions of each channel alone, each before one of 1 x 1, batch norms."""

import torch
from torch import Tensor, nn
from transformers import MobileNetV1Config, MobileNetV1ForImageClassification

BATCH, SIZE, CLASSES = 256, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = MobileNetV1Config(num_labels=CLASSES, classifier_dropout_prob=0.0)
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    labels = torch.zeros(BATCH, dtype=torch.long)
    return MobileNetV1ForImageClassification(config).train(), {"pixel_values": images, "labels": labels}
