"""Phi-4 mini (arXiv 2503.01743): 32 layers of 3,072 channels, rotary positions for three quarters of a head, a vocabulary of 200,064."""

import torch
from torch import Tensor, nn
from transformers import Phi3Config, Phi3ForCausalLM

BATCH, SEQUENCE = 1, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Phi3Config(
            vocab_size=200_064,
            hidden_size=3072,
            intermediate_size=8192,
            num_hidden_layers=32,
            num_attention_heads=24,
            num_key_value_heads=8,
            max_position_embeddings=4096,
            original_max_position_embeddings=4096,
            rope_parameters={"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.75},
            pad_token_id=None,
            tie_word_embeddings=True,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            use_cache=False,
        )
        self.model = Phi3ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
