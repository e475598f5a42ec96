"""Which matrix products Inductor pads, by a rule: its own way is to time both on a GPU.

A product of an odd vocabulary takes four to six times as long as one whose rows are multiples of 16 bytes, and padding
takes two copies. So Inductor pads every large one; small ones, where the copies may cost more, it does not time either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from torch import Tensor

# Of Inductor's is_mm_compute_bound on an H200: 989 TFLOP/s over 4,800 GB/s, and half of that.
_COMPUTE_BOUND = 0.5 * 1000 * 989 / 4800
_ROW_BYTES = 16


@contextmanager
def padding_by_rule() -> Iterator[None]:
    """Inside, torch/_inductor/fx_passes/pad_mm.py pads what `should_pad` says; what it may not pad it leaves alone."""
    from torch._inductor.fx_passes import pad_mm

    def rule(_match: Any, first: Tensor, second: Tensor, _op: Any, _input: Tensor | None = None) -> bool:
        return should_pad(first, second)

    with mock.patch.object(pad_mm, "_should_pad", rule):
        yield


def should_pad(first: Tensor, second: Tensor) -> bool:
    """Whether padding [.., rows, depth] x [.., depth, columns] pays: the product is bound by what it computes, and rows of
    a factor or of the result begin at no multiple of 16 bytes."""
    rows, depth = (int(size) for size in first.shape[-2:])
    columns = int(second.shape[-1])
    moved = rows * depth + depth * columns + rows * columns
    if rows * depth * columns / moved <= _COMPUTE_BOUND:
        return False
    unit = max(1, _ROW_BYTES // first.element_size())
    return any(length % unit for length in (_contiguous(first), _contiguous(second), columns))


def _contiguous(factor: Tensor) -> int:
    """Elements along the dimension that lies side by side."""
    return int(factor.shape[-1] if factor.stride(-1) == 1 else factor.shape[-2])
