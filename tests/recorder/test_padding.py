"""Products that Inductor pads: by a rule, where its own way is to time them on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from conftest import PLAIN
from dcrecord.building import build_without_weights
from dcrecord.inductor.padding import should_pad
from dcrecord.options import Reporter
from dcrecord.recording import record_forms
from dcrecord.workload import Fill, Workload, call_by_position
from torch import Tensor, nn

CASES = [
    ((4096, 768, 50257), False, torch.bfloat16, True),  # columns: the result's rows
    ((4096, 50257, 768), False, torch.bfloat16, True),  # depth: the first factor's rows
    ((50257, 4096, 768), True, torch.bfloat16, True),  # rows, of a factor that lies transposed
    ((50257, 4096, 768), False, torch.bfloat16, False),  # so many rows, each of them aligned
    ((4096, 768, 50264), False, torch.bfloat16, False),
    ((4096, 768, 50260), False, torch.float32, False),  # four elements of 4 bytes are 16
    ((4096, 16, 50257), False, torch.bfloat16, False),  # bound by memory
]


@pytest.mark.parametrize(("sizes", "transposed", "dtype", "expected"), CASES)
def test_large_products_of_unaligned_rows_are_padded(
    sizes: tuple[int, int, int], transposed: bool, dtype: torch.dtype, expected: bool
) -> None:
    rows, depth, columns = sizes
    shape = (depth, rows) if transposed else (rows, depth)
    first = torch.empty(shape, dtype=dtype, device="meta")
    second = torch.empty(depth, columns, dtype=dtype, device="meta")
    assert should_pad(first.t() if transposed else first, second) is expected


class Head(nn.Module):
    """A vocabulary that is no multiple of eight."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(768, 2051, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x).float().square().mean()


def products(form: dict[str, Any]) -> list[list[list[int]]]:
    def shape(value: int) -> list[int]:
        return form["values"][value]["shape"]

    return [
        [shape(given["v"]) for given in op["args"] if isinstance(given, dict)]
        for graph in form["graphs"]
        for op in graph["ops"]
        if "kernel" not in op and form["schemas"][op["schema"]].startswith("aten::mm(")
    ]


def test_recorded_products_are_padded() -> None:
    options = replace(PLAIN, dtype="bfloat16", backend="inductor")
    body, unknown = build_without_weights(Head, options.torch_dtype)
    example = torch.randn(4096, 768, dtype=torch.bfloat16)
    workload = Workload("head", body, call_by_position, {"x": example}, {"x": Fill()}, 4096, unknown)
    document, forms = record_forms(workload, options, Reporter())
    assert [[4096, 768], [768, 2056]] in products(forms["zero3"])
    assert all(2051 not in size for form in forms.values() for product in products(form) for size in product)
    assert "shape_padding" not in forms["zero3"]["backend"]["settings"]
