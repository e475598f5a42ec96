"""Llama-3.2-1B fine-tuned with LoRA (arXiv 2106.09685): the model is frozen, rank-16 adapters beside every linear layer are
trained, as PEFT writes them (float32 nowhere, no dropout).
"""

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, SEQUENCE, RANK, ALPHA = 4, 2048, 16, 32


class Adapted(nn.Module):
    """A frozen linear layer and what is learnt beside it: W x + alpha / rank * B (A x)."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.base = linear.requires_grad_(False)
        self.down = nn.Linear(linear.in_features, RANK, bias=False)
        self.up = nn.Linear(RANK, linear.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x)) * (ALPHA / RANK)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        config = LlamaConfig(
            vocab_size=128_256,
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            head_dim=64,
            rope_theta=500_000.0,
            tie_word_embeddings=True,
            use_cache=False,
        )
        self.model = LlamaForCausalLM(config).requires_grad_(False)
        for layer in self.model.model.layers:
            for part in (layer.self_attn, layer.mlp):
                for name, child in list(part.named_children()):
                    if isinstance(child, nn.Linear):
                        setattr(part, name, Adapted(child))

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(input_ids=ids, labels=ids).loss


def build() -> tuple[nn.Module, tuple[Tensor]]:
    return Model(), (torch.zeros((BATCH, SEQUENCE), dtype=torch.long),)
