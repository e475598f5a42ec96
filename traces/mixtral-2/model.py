"""Two layers of Mixtral 8x7B (arXiv 2401.04088): eight experts, two of them for each token."""

import torch
from torch import Tensor, nn
from transformers import MixtralConfig, MixtralForCausalLM

BATCH, SEQUENCE = 1, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = MixtralConfig(
            vocab_size=32_000,
            hidden_size=4096,
            intermediate_size=14_336,
            num_hidden_layers=2,
            num_attention_heads=32,
            num_key_value_heads=8,
            num_local_experts=8,
            num_experts_per_tok=2,
            sliding_window=None,
            max_position_embeddings=4096,
            use_cache=False,
        )
        self.model = MixtralForCausalLM._from_config(config, attn_implementation="sdpa", experts_implementation="grouped_mm")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
