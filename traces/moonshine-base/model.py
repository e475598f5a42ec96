"""Moonshine base (arXiv 2410.15608): sound of 20 s through three convolutions, an encoder and a decoder of eight layers of 416 channels."""

import torch
from torch import Tensor, nn
from transformers import MoonshineConfig, MoonshineForConditionalGeneration

BATCH, SAMPLES, WORDS = 32, 320_000, 128


class Speech(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = MoonshineConfig(
            vocab_size=32_768,
            hidden_size=416,
            intermediate_size=1664,
            encoder_num_hidden_layers=8,
            decoder_num_hidden_layers=8,
            encoder_num_attention_heads=8,
            decoder_num_attention_heads=8,
            pad_token_id=0,
            use_cache=False,
        )
        self.model = MoonshineForConditionalGeneration._from_config(config, attn_implementation="sdpa")

    def forward(self, sound: Tensor, words: Tensor) -> Tensor:
        return self.model(input_values=sound, labels=words).loss


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    return Speech().train(), {"sound": torch.zeros(BATCH, SAMPLES), "words": torch.zeros(BATCH, WORDS, dtype=torch.int64)}
