"""PEGASUS large: an encoder and a decoder of 16 layers, summaries of 128 words of texts of 512."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PegasusConfig, PegasusForConditionalGeneration

BATCH, SEQUENCE = 16, 512


class Summary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = PegasusConfig(
            vocab_size=96_103,
            d_model=1024,
            encoder_layers=16,
            decoder_layers=16,
            encoder_attention_heads=16,
            decoder_attention_heads=16,
            encoder_ffn_dim=4096,
            decoder_ffn_dim=4096,
            dropout=0.0,
            attention_dropout=0.0,
            activation_dropout=0.0,
            use_cache=False,
        )
        self.model = PegasusForConditionalGeneration._from_config(config, attn_implementation="sdpa").eval()

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.model(input_ids=source, labels=target, use_cache=False).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    source = torch.zeros(batch, sequence, dtype=torch.int64)
    return Summary(), {"source": source, "target": torch.zeros(batch, sequence // 4, dtype=torch.int64)}
