"""ViT-Large/16 trained to classify images: patches by a convolution, rows of 197 tokens, no vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import ViTConfig, ViTForImageClassification

BATCH = 128


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = ViTConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=1000,
        )
        self.model = ViTForImageClassification._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        logits = self.model(pixel_values=images).logits
        return nn.functional.cross_entropy(logits.float(), labels)


def build(batch: int = BATCH) -> tuple[nn.Module, dict[str, Tensor]]:
    images = torch.zeros(batch, 3, 224, 224)
    return Classifier().train(), {"images": images, "labels": torch.zeros(batch, dtype=torch.int64)}
