"""Small models for jobs on CPU ranks, by name, and what one micro-step feeds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

VOCABULARY = 128
WIDTH = 32
BATCH, LENGTH = 2, 16


class Block(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.dropout(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


class OwnCode(nn.Module):
    """A model as a user writes it: embeddings tied to the head, logits beside the loss."""

    def __init__(self, layers: int = 2, dropout: float = 0.0, breaks: bool = False, checkpoint: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(WIDTH)
        self.breaks = breaks
        self.checkpoint = checkpoint

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embedding(tokens)
        for index, block in enumerate(self.blocks):
            if self.breaks and index == 1:
                torch._dynamo.graph_break()
            if self.checkpoint:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.norm(x) @ self.embedding.weight.t()
        loss = torch.nn.functional.cross_entropy(logits.float().view(-1, VOCABULARY), targets.view(-1))
        return loss, logits


class LowRank(nn.Module):
    """A linear layer whose weight is frozen, with a trained update of low rank beside it (LoRA)."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))


def _frozen() -> nn.Module:
    model = OwnCode()
    model.blocks[0].requires_grad_(False)
    return model


def _lora() -> nn.Module:
    model = OwnCode()
    model.requires_grad_(False)
    for block in model.blocks:
        block.up = LowRank(block.up)
        block.down = LowRank(block.down)
    return model


def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        tie_word_embeddings=True,
        use_cache=False,
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "own": OwnCode,
    "three-layers": lambda: OwnCode(layers=3),
    "dropout": lambda: OwnCode(dropout=0.1),
    "breaks": lambda: OwnCode(breaks=True),
    "checkpoint": lambda: OwnCode(checkpoint=True),
    "frozen": _frozen,
    "lora": _lora,
    "llama": _llama,
}


def build(name: str) -> nn.Module:
    """The model with the same weights on every rank."""
    torch.manual_seed(0)
    return MODELS[name]().train()


def feed(model: str, engine: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Calls the engine, returns the loss."""
    if model == "llama":
        return engine(input_ids=tokens, labels=tokens).loss
    return engine(tokens, tokens.roll(1, dims=1))[0]
