"""BART large (arXiv 1910.13461): an encoder and a decoder of 12 layers and 1,024 channels each, learned positions."""

import torch
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration

BATCH, SEQUENCE = 16, 512


class Summaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = BartConfig(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, use_cache=False)
        self.model = BartForConditionalGeneration._from_config(config, attn_implementation="sdpa").eval()  # it would drop layers with probability 0

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(input_ids=source, labels=target).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    source = torch.zeros(batch, sequence, dtype=torch.int64)
    return Summaries(), {"source": source, "target": torch.zeros(batch, sequence // 4, dtype=torch.int64)}
