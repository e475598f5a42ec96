"""RoBERTa large (arXiv 1907.11692): 24 layers of 1,024 channels, every word classified in a vocabulary of 50,265."""

import torch
from torch import Tensor, nn
from transformers import RobertaConfig, RobertaForMaskedLM

BATCH, SEQUENCE = 16, 512


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = RobertaConfig(
            vocab_size=50_265,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            max_position_embeddings=514,
            type_vocab_size=1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = RobertaForMaskedLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return Words().train(), {"words": words, "labels": words.clone()}
