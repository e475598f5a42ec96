"""DINOv3 large (arXiv 2508.10104): 24 layers of 1,024 channels over patches of 16 x 16 with rotary positions and four registers."""

import torch
from torch import Tensor, nn
from transformers import DINOv3ViTConfig, DINOv3ViTModel

BATCH, SIZE, CLASSES = 16, 448, 1000


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = DINOv3ViTConfig(
            hidden_size=1024,
            intermediate_size=4096,
            num_hidden_layers=24,
            num_attention_heads=16,
            image_size=SIZE,
            num_register_tokens=4,
        )
        self.model = DINOv3ViTModel._from_config(config, attn_implementation="sdpa").eval()  # trained, it draws positions at random
        self.head = nn.Linear(1024, CLASSES)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.head(self.model(images).pooler_output).float(), labels)


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model(), (torch.zeros(BATCH, 3, SIZE, SIZE), torch.zeros(BATCH, dtype=torch.long))
