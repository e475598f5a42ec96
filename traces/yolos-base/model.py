"""YOLOS (arXiv 2106.00666) of ViT-B's size: a hundred detection tokens beside the 4,200 patches of an image of 800 x 1,344."""

import torch
from torch import Tensor, nn
from transformers import YolosConfig, YolosForObjectDetection

BATCH, HEIGHT, WIDTH, OBJECTS, CLASSES = 4, 800, 1344, 100, 92


class Model(nn.Module):
    """Each detection token has its object; the matching of the published loss is not differentiated and left out."""

    def __init__(self) -> None:
        super().__init__()
        config = YolosConfig(
            image_size=[HEIGHT, WIDTH],
            num_labels=CLASSES - 1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = YolosForObjectDetection._from_config(config, attn_implementation="sdpa")

    def forward(self, images: Tensor, labels: Tensor, boxes: Tensor) -> Tensor:
        found = self.model(pixel_values=images)
        classes = nn.functional.cross_entropy(found.logits.flatten(0, 1).float(), labels.flatten())
        return classes + 5 * nn.functional.l1_loss(found.pred_boxes.float(), boxes)


def build() -> tuple[nn.Module, tuple[Tensor, ...]]:
    labels = torch.zeros(BATCH, OBJECTS, dtype=torch.long)
    return Model().train(), (torch.zeros(BATCH, 3, HEIGHT, WIDTH), labels, torch.zeros(BATCH, OBJECTS, 4, dtype=torch.float32))
