"""ConvBERT (arXiv 2008.02496): half of the heads are convolutions whose kernels each position computes for itself."""

import torch
from torch import Tensor, nn
from transformers import ConvBertConfig, ConvBertForMaskedLM

BATCH, LENGTH, WORDS = 48, 512, 30522


def build() -> tuple[nn.Module, dict[str, Tensor]]:
    config = ConvBertConfig(vocab_size=WORDS, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    words = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    return ConvBertForMaskedLM(config).train(), {"input_ids": words, "labels": words.clone()}
