"""LeViT-384 (arXiv 2104.01136): attention whose projections have batch norms, behind four convolutions."""

import torch
from torch import Tensor, nn
from transformers import LevitConfig, LevitForImageClassification

BATCH, SIZE, CLASSES = 256, 224, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = LevitConfig(
        hidden_sizes=[384, 512, 768], num_attention_heads=[6, 9, 12], depths=[4, 4, 4], key_dim=[32, 32, 32], num_labels=CLASSES
    )
    model = LevitForImageClassification(config)
    return model, {"pixel_values": torch.zeros(BATCH, 3, SIZE, SIZE), "labels": torch.zeros(BATCH, dtype=torch.long)}
