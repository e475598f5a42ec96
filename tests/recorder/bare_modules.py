"""Modules of many kinds, none of transformers', that are recorded and run against plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class TiedWords(nn.Module):
    """Embedding and output layer share their weight; one parameter is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.unused = nn.Linear(2, 2)
        self.out = nn.Linear(6, 10, bias=False)
        self.out.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.out(self.table(ids)).flatten(0, 1), ids.flatten())


class Positions(nn.Module):
    """Two buffers (one not persistent, one not contiguous), a tensor that is no buffer, and a constant of the code."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.register_buffer("angles", torch.arange(12.0).view(4, 3).cos(), persistent=False)
        self.register_buffer("turned", torch.arange(6, dtype=torch.int64).view(3, 2).t())
        self.plain = torch.tensor([0.25, 0.5, 0.75])

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows + self.angles.t().sum(0)) * torch.tensor([0.5, 1.0, 2.0])
        return ((hidden + self.plain.type_as(hidden).detach()).sum(0) * self.turned).mean()


class Images(nn.Module):
    """Convolution, group norm, pooling, interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(2, 8)
        self.second = nn.Conv2d(8, 4, 3, stride=2, bias=False)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = functional.avg_pool2d(functional.gelu(self.norm(self.first(images))), 2)
        scores = functional.interpolate(self.second(hidden), scale_factor=2).mean((2, 3))
        return {"scores": scores, "loss": scores.logsumexp(-1).mean()}


class Attention(nn.Module):
    """Fused projections, causal attention with the mathematical kernel, layer norm, a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.query_key_value = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, length, _ = rows.shape
        query, key, value = (
            part.view(batch, length, 3, 4).transpose(1, 2) for part in self.query_key_value(self.norm(rows)).split(12, -1)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = rows + self.out(mixed.transpose(1, 2).reshape(batch, length, 12))
        return hidden.square().mean(), hidden


class Choices(nn.Module):
    """Integers and indexing: embedding, topk, gather, scatter, where, split into lists, cumsum."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)
        self.layer = nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(self.table(ids))
        top, where = hidden.softmax(-1).topk(3, dim=-1)
        spread = torch.zeros_like(hidden).scatter_add(-1, where, top)
        first, second = hidden.chunk(2, dim=-1)
        return torch.where(spread > 0, spread, hidden.clamp(min=-3)).mean() + (first * second.cumsum(0)).mean()


class Halved(torch.autograd.Function):
    """An autograd function of the user's own."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows)
        return rows.relu() / 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (rows,) = ctx.saved_tensors
        return gradient * (rows > 0) / 2


class OwnFunction(nn.Module):
    """Calls an autograd function, several times the same layer, and a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            rows = Halved.apply(self.layer(rows))
        return rows.float().mean()


def layers() -> nn.Module:
    """A Sequential of odd widths, whose last layer has no bias; its result is no scalar."""
    return nn.Sequential(nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3, bias=False))


def transformer_layer() -> nn.Module:
    """PyTorch's own encoder layer."""
    return nn.TransformerEncoderLayer(12, 3, dim_feedforward=20, dropout=0.0, batch_first=True, norm_first=True)


@dataclass(frozen=True)
class Bare:
    """A module and examples of its inputs; integers are below 10."""

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    integers: bool = False

    def inputs(self) -> list[torch.Tensor]:
        """Inputs from a fixed seed."""
        seeded = torch.Generator().manual_seed(1)
        if self.integers:
            return [torch.randint(0, 10, shape, generator=seeded) for shape in self.shapes]
        return [torch.randn(shape, generator=seeded) for shape in self.shapes]


BARE_MODULES = {
    "layers": Bare(layers, ((6, 7),)),
    "tied words": Bare(TiedWords, ((3, 4),), integers=True),
    "positions": Bare(Positions, ((5, 4),)),
    "images": Bare(Images, ((2, 3, 12, 12),)),
    "attention": Bare(Attention, ((2, 6, 12),)),
    "choices": Bare(Choices, ((4, 6),), integers=True),
    "own function": Bare(OwnFunction, ((4, 5),)),
    "transformer layer": Bare(transformer_layer, ((2, 6, 12),)),
}
