"""OPT-1.3B (arXiv 2205.01068): 24 layers of 2,048 channels with ReLU, layer norms and learned positions."""

import torch
from torch import Tensor, nn
from transformers import OPTConfig, OPTForCausalLM

BATCH, SEQUENCE = 4, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = OPTConfig(
            vocab_size=50_272,
            hidden_size=2048,
            num_hidden_layers=24,
            ffn_dim=8192,
            num_attention_heads=32,
            max_position_embeddings=2048,
            word_embed_proj_dim=2048,
            dropout=0.0,
            attention_dropout=0.0,
            layerdrop=0.0,
            use_cache=False,
        )
        self.model = OPTForCausalLM._from_config(config, attn_implementation="sdpa").eval()  # it would drop layers with probability 0

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords(), {"words": words, "labels": words.clone()}
