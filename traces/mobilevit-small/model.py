"""MobileViT-S (arXiv 2110.02178): inverted residuals with batch norms, and attention over unfolded patches between them."""

import torch
from torch import Tensor, nn
from transformers import MobileViTConfig, MobileViTForImageClassification

BATCH, SIZE, CLASSES = 256, 256, 1000


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = MobileViTConfig(
        num_labels=CLASSES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0
    )
    images = torch.zeros(BATCH, 3, SIZE, SIZE)
    labels = torch.zeros(BATCH, dtype=torch.long)
    return MobileViTForImageClassification(config).train(), {"pixel_values": images, "labels": labels}
