"""ESM-2 of 650 M parameters: a masked language model over proteins, 33 layers of 1,280 channels with rotary positions."""

import torch
from torch import Tensor, nn
from transformers import EsmConfig, EsmForMaskedLM

BATCH, SEQUENCE = 8, 1024


class Proteins(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = EsmConfig(
            vocab_size=33,
            hidden_size=1280,
            num_hidden_layers=33,
            num_attention_heads=20,
            intermediate_size=5120,
            position_embedding_type="rotary",
            emb_layer_norm_before=False,
            token_dropout=False,
            mask_token_id=32,
            pad_token_id=1,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.model = EsmForMaskedLM(config)

    def forward(self, residues: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=residues, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    residues = torch.full((batch, sequence), 5, dtype=torch.int64)
    return Proteins().train(), {"residues": residues, "labels": residues.clone()}
