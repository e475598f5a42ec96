"""MobileNetV2 (arXiv 1801.04381): a convolution for each channel between narrow ones of 1 x 1, batch norms."""

import torch
from torch import Tensor, nn
from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

BATCH, SIZE, CLASSES = 256, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = MobileNetV2Config(num_labels=CLASSES, classifier_dropout_prob=0.0)
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    labels = torch.zeros(BATCH, dtype=torch.long)
    return MobileNetV2ForImageClassification(config).train(), {"pixel_values": images, "labels": labels}
