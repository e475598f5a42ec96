"""WavLM large: HuBERT's layers with a bias of scores that each word gates for itself, frames of 10 s of sound classified."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import WavLMConfig, WavLMModel

BATCH, SAMPLES, CLASSES = 8, 160_000, 504


class Frames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = WavLMConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            feat_extract_norm="layer",
            do_stable_layer_norm=True,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            feat_proj_dropout=0.0,
            layerdrop=0.0,
            apply_spec_augment=False,
        )
        self.model = WavLMModel(config).eval()  # it would drop layers with probability 0
        self.head = nn.Linear(1024, CLASSES)

    def forward(self, sound: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(self.model(sound).last_hidden_state)
        return nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Frames(), (torch.zeros(BATCH, SAMPLES), torch.zeros(BATCH, 499, dtype=torch.long))
