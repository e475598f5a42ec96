"""Four layers of gpt-oss-20b: attention with learnt sinks, every other layer in windows of 128 words, 32 experts, 4 for each token."""

import torch
from torch import Tensor, nn
from transformers import GptOssConfig, GptOssForCausalLM

BATCH, SEQUENCE = 1, 2048


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = GptOssConfig(
            vocab_size=201_088,
            hidden_size=2880,
            intermediate_size=2880,
            num_hidden_layers=4,
            num_local_experts=32,
            num_experts_per_tok=4,
            use_cache=False,
        )
        self.model = GptOssForCausalLM._from_config(config, attn_implementation="eager", experts_implementation="grouped_mm")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
