"""PatchTST (arXiv 2211.14730), large: 21 time series of 512 steps in patches of 16, each on its own, batch norms."""

import torch
from torch import Tensor, nn
from transformers import PatchTSTConfig, PatchTSTForPrediction

BATCH, SERIES, STEPS, AHEAD = 256, 21, 512, 96


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = PatchTSTConfig(
            num_input_channels=SERIES,
            context_length=STEPS,
            patch_length=16,
            patch_stride=16,
            prediction_length=AHEAD,
            d_model=1024,
            num_hidden_layers=12,
            num_attention_heads=16,
            ffn_dim=4096,
            attention_dropout=0.0,
            ff_dropout=0.0,
            head_dropout=0.0,
            loss="mse",
        )
        self.model = PatchTSTForPrediction(config)

    def forward(self, past: Tensor, future: Tensor) -> Tensor:
        return self.model(past_values=past, future_values=future).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, STEPS, SERIES), torch.zeros(BATCH, AHEAD, SERIES))
