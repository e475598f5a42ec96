"""CvT-21 (arXiv 2103.15808): queries, keys and values by a convolution of each channel and a batch norm."""

import torch
from torch import Tensor, nn
from transformers import CvtConfig, CvtForImageClassification

BATCH, SIZE, CLASSES = 128, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = CvtConfig(
        depth=[1, 4, 16],
        num_labels=CLASSES,
        drop_rate=[0.0, 0.0, 0.0],
        drop_path_rate=[0.0, 0.0, 0.0],
        attention_drop_rate=[0.0, 0.0, 0.0],
    )
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    return CvtForImageClassification(config).train(), {"pixel_values": images, "labels": torch.zeros(BATCH, dtype=torch.long)}
