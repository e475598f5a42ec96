"""Modules that cannot be recorded, one for each reason."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention


class Layer(nn.Module):
    """What the others do something forbidden with."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)


class Item(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows)
        if hidden.sum().item() > 0:
            hidden = hidden * 2
        return hidden.mean()


class Sleep(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        time.sleep(0.001)
        return self.layer(rows).mean()


class Volume(nn.Module):
    """Its backward solves a system of equations, which no kernel does in half precision."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.det(rows[:, :4])


class Determinant(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.volume = Volume()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.volume(self.layer(rows))


class Heads(Layer):
    """Two query heads beside three key heads."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key = self.layer(rows).view(1, 2, 4, 4), self.layer(rows).new_zeros(1, 3, 4, 4)
        return functional.scaled_dot_product_attention(query, key, key, enable_gqa=True)


class Selection(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows)
        return hidden[hidden > 0].mean()


class InputMutation(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows.add_(1)
        return self.layer(rows).mean()


class BufferMutation(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(8))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return (self.layer(rows) * self.count).mean()


class Dropout(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.drop(self.layer(rows)).mean()


class Noise(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return (self.layer(rows) * torch.rand(8)).mean()


class Condition(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(rows)
        return torch.cond(hidden.sum() > 0, lambda x: x * 2, lambda x: x + 1, (hidden,)).mean()


class FlexAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 48)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = self.layer(rows).view(2, 128, 3, 1, 16).permute(2, 0, 3, 1, 4).unbind(0)
        return flex_attention(query, key, value).mean()


class Prims(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        places = torch.ops.prims.iota(8, start=0, step=1, dtype=torch.int64, device="cpu", requires_grad=False)
        return (self.layer(rows) * places).mean()


class UnderivablePrims(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.ops.prims.convert_element_type(self.layer(rows), torch.float64).mean()


@torch.library.custom_op("refused_modules::double", mutates_args=())
def double(rows: torch.Tensor) -> torch.Tensor:
    """An operator of the user's own."""
    return rows * 2


double.register_fake(torch.empty_like)
double.register_autograd(lambda _, gradient: gradient * 2)


class CustomOperator(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return double(self.layer(rows)).mean()


class BatchNorm(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layer(rows)).mean()


class Recurrence(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layer = kind(8, 8, batch_first=True)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows)[0].mean()


class WrongShapes(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return (self.layer(rows) @ rows).mean()


class Raises(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if rows.shape[0] != 1:
            raise ValueError("one row only", rows.shape[0])
        return self.layer(rows).mean()


class NoLoss(Layer):
    def forward(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"hidden": self.layer(rows)}


class ForbiddenUnderAutocast(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy(self.layer(rows).sigmoid(), rows)


class Synchronized(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.SyncBatchNorm(8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layer(rows)).mean()


class SparseTable(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(8, 8, sparse=True)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.table(rows.long()).mean()


class SparseFunction(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return functional.embedding(rows.long(), self.layer.weight, sparse=True).mean()


class Lazy(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LazyLinear(8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(self.first(rows)).mean()


class NoClasses(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(8, 0, bias=False)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.layer(rows).mean()


class Cell(nn.Module):
    def __init__(self, kind: type[nn.RNNCellBase]) -> None:
        super().__init__()
        self.cell = kind(8, 8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        state = self.cell(rows)
        return (state[0] if isinstance(state, tuple) else state).mean()


class Halves(Layer):
    """A gate whose halves PyTorch calls unsafe to split: views that their schema does not declare."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        value, gate = self.layer(rows).unsafe_chunk(2, -1)
        first, second = self.layer(rows).unsafe_split_with_sizes([3, 5], -1)
        return (value * gate.sigmoid()).mean() + first.mean() * second.mean()


class FunctionalDropout(Layer):
    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = functional.dropout(self.layer(rows), 0.3)[None, None]
        return functional.scaled_dot_product_attention(hidden, hidden, hidden, dropout_p=0.2).mean()
