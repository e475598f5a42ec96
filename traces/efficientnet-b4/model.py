"""EfficientNet-B4 (arXiv 1905.11946): depthwise convolutions, squeezes and batch norms, without dropout."""

import torch
from torch import Tensor, nn
from transformers import EfficientNetConfig, EfficientNetForImageClassification

BATCH, SIZE, CLASSES = 64, 380, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = EfficientNetConfig(
        image_size=SIZE,
        width_coefficient=1.4,
        depth_coefficient=1.8,
        hidden_dim=1792,
        dropout_rate=0.0,
        drop_connect_rate=0.0,
        num_labels=CLASSES,
    )
    model = EfficientNetForImageClassification(config)
    return model, {"pixel_values": torch.zeros(BATCH, 3, SIZE, SIZE), "labels": torch.zeros(BATCH, dtype=torch.long)}
