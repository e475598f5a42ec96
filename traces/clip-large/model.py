"""CLIP ViT-L/14 (arXiv 2103.00020): an encoder of images beside one of captions, and a loss over all pairs of the batch."""

import torch
from torch import Tensor, nn
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

BATCH, WORDS, SIZE = 64, 77, 224


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        text = CLIPTextConfig(
            vocab_size=49_408, hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12
        )
        vision = CLIPVisionConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, image_size=SIZE, patch_size=14
        )
        self.model = CLIPModel(
            CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=768)
        )

    def forward(self, captions: Tensor, images: Tensor) -> Tensor:
        return self.model(input_ids=captions, pixel_values=images, return_loss=True).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model(), (torch.zeros((BATCH, WORDS), dtype=torch.long), torch.zeros(BATCH, 3, SIZE, SIZE))
