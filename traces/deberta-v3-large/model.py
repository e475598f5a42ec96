"""DeBERTa-v3-large (arXiv 2111.09543) fine-tuned to classify pairs of sentences: attention to what words are and, through
three tables of relative positions that are gathered for every pair, to where they are.
"""

import torch
from torch import Tensor, nn
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

BATCH, SEQUENCE, CLASSES = 16, 256, 3


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = DebertaV2Config(
            vocab_size=128_100,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            max_position_embeddings=512,
            relative_attention=True,
            position_buckets=256,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pooler_dropout=0.0,
            type_vocab_size=0,
            num_labels=CLASSES,
            problem_type="single_label_classification",
        )
        self.model = DebertaV2ForSequenceClassification(config)

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Model(), (torch.zeros((BATCH, SEQUENCE), dtype=torch.long), torch.zeros(BATCH, dtype=torch.long))
