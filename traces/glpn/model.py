"""GLPN (arXiv 2201.07436): depths by a mix transformer, whose states are interpolated and fused by convolutions."""

import torch
from torch import Tensor, nn
from transformers import GLPNConfig, GLPNForDepthEstimation

BATCH, HEIGHT, WIDTH = 8, 352, 704


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GLPNConfig(
            depths=[3, 8, 27, 3],
            hidden_sizes=[64, 128, 320, 512],
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            drop_path_rate=0.0,
        )
        self.model = GLPNForDepthEstimation(config)

    def forward(self, images: Tensor, depths: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.model(pixel_values=images).predicted_depth.float(), depths)


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    depths = torch.zeros(BATCH, HEIGHT, WIDTH, dtype=torch.float32)
    return Model().train(), (torch.zeros(BATCH, 3, HEIGHT, WIDTH), depths)
