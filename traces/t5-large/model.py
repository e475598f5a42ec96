"""T5-large: an encoder and a decoder that attends to it, positions as a learned bias of the scores, written out."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import T5Config, T5ForConditionalGeneration

BATCH, SEQUENCE = 16, 512


class Translation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = T5Config(
            vocab_size=32128,
            d_model=1024,
            d_kv=64,
            d_ff=4096,
            num_layers=24,
            num_heads=16,
            dropout_rate=0.0,
            decoder_start_token_id=0,
        )
        self.model = T5ForConditionalGeneration._from_config(config)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(input_ids=source, labels=target, use_cache=False).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    source = torch.zeros(batch, sequence, dtype=torch.int64)
    return Translation().train(), {"source": source, "target": torch.zeros(batch, sequence // 4, dtype=torch.int64)}
