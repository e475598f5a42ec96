"""OLMo 2 1B (arXiv 2501.00656): 16 layers of 2,048 channels, norms behind attention and feed-forward, and of queries and keys."""

import torch
from torch import Tensor, nn
from transformers import Olmo2Config, Olmo2ForCausalLM

BATCH, SEQUENCE = 2, 4096


class NextWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = Olmo2Config(
            vocab_size=100_352,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=16,
            num_key_value_heads=16,
            max_position_embeddings=4096,
            use_cache=False,
        )
        self.model = Olmo2ForCausalLM._from_config(config, attn_implementation="sdpa")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        return self.model(input_ids=words, labels=labels).loss


def build(batch: int = BATCH, sequence: int = SEQUENCE) -> tuple[nn.Module, dict[str, Tensor]]:
    words = torch.zeros(batch, sequence, dtype=torch.int64)
    return NextWords().train(), {"words": words, "labels": words.clone()}
