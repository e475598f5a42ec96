"""The models of tests/data/training, small enough for a CPU. Almost no parameter divides evenly among 2 or 3 ranks."""

from collections.abc import Callable

import torch
from torch import nn

WORDS = 13
WIDTH = 15
RANK = 2


class Adapted(nn.Module):
    """A linear layer with a low-rank adapter beside it, as LoRA has it: x W^T + x A^T B^T."""

    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(WIDTH, WIDTH)
        self.down = nn.Linear(WIDTH, RANK, bias=False)
        self.up = nn.Linear(RANK, WIDTH, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.base(rows) + self.up(self.down(rows))


class Words(nn.Module):
    """Predicts the words that it is given: an embedding, two residual blocks, a head."""

    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.layers = nn.ModuleList(layer() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        rows = self.embed(words)
        for norm, layer in zip(self.norms, self.layers):
            rows = rows + torch.nn.functional.gelu(layer(norm(rows)))
        return torch.nn.functional.cross_entropy(self.head(rows).float(), words)


def plain(batch: int = 7) -> tuple[nn.Module, torch.Tensor]:
    return Words(lambda: nn.Linear(WIDTH, WIDTH)), torch.zeros(batch, dtype=torch.long)


def adapted(batch: int = 7) -> tuple[nn.Module, torch.Tensor]:
    return Words(Adapted), torch.zeros(batch, dtype=torch.long)
