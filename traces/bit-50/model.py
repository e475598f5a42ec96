"""BiT-R50x1 (arXiv 1912.11370): convolutions whose weights are normalized in each step, and group norms."""

import torch
from torch import Tensor, nn
from transformers import BitConfig, BitForImageClassification

BATCH, SIZE, CLASSES = 128, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    labels = torch.zeros(BATCH, dtype=torch.long)
    return BitForImageClassification(BitConfig(num_labels=CLASSES)).train(), {"pixel_values": images, "labels": labels}
