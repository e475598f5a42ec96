"""DPT (arXiv 2103.13413) upon ViT-L: depths of images of 384 x 384, by convolutions over the states of four layers."""

import torch
from torch import Tensor, nn
from transformers import DPTConfig, DPTForDepthEstimation

BATCH, SIZE = 16, 384


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = DPTConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            backbone_out_indices=[5, 11, 17, 23],
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = DPTForDepthEstimation._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, depths: Tensor) -> Tensor:
        return nn.functional.l1_loss(self.model(pixel_values=images).predicted_depth.float(), depths)


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model().train(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, SIZE, SIZE, dtype=torch.float32))
