"""The recorder's lists of CUDA's autocast rules are those of the installed PyTorch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from dcrecord import cuda_autocast

HEADER = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"


def _names(macro: str) -> set[str]:
    """`_(prod, dim_int)` -> `prod.dim_int`, of one list of the header."""
    body = re.search(rf"#define {macro}\(_\)(.*?)\n\n", HEADER.read_text(), re.DOTALL)
    assert body is not None
    return {f"{name}.{overload}" if overload else name for name, overload in re.findall(r"_\((\w+)(?:, (\w+))?\)", body[1])}


@pytest.mark.parametrize(
    ("macro", "listed"),
    [
        ("AT_FORALL_LOWER_PRECISION_FP", cuda_autocast.LOWER_PRECISION),
        ("AT_FORALL_FP32", cuda_autocast.FLOAT32),
        ("AT_FORALL_FP32_SET_OPT_DTYPE", [*cuda_autocast.FLOAT32_BY_DTYPE_ARGUMENT, *cuda_autocast.NOT_TRACED]),
        ("AT_FORALL_PROMOTE", cuda_autocast.WIDEST),
    ],
)
def test_list_is_that_of_the_header(macro: str, listed: list[str]) -> None:
    expected = _names(macro)
    assert len(expected) > 5
    assert expected <= set(listed)
    assert set(listed) - expected <= set(cuda_autocast.NOT_TRACED)


def test_norm_without_dtype_is_redirected_as_in_the_header() -> None:
    redirected = set(re.findall(r'"(norm\.\w+)"', HEADER.read_text()))
    assert redirected - set(cuda_autocast.NOT_TRACED) == set(cuda_autocast.NORM)
