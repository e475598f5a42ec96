"""Which attention kernel is taken, beside what PyTorch chose on an H200."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attention_kernels import operands_of
from conftest import ROOT
from dcrecord.attention_choice import AttentionCall, chosen_by_pytorch, problem_of
from dcrecord.options import AUTOMATIC_KERNELS

_LINES = (ROOT / "configs" / "measured" / "h200-attention.jsonl").read_text().splitlines()
MEASURED = [json.loads(line) for line in _LINES[1:]]


def _call(of: dict[str, Any]) -> AttentionCall:
    return AttentionCall(*operands_of(of, "meta"), of["causal"], of["heads"] != of["key_heads"])


@pytest.mark.parametrize("of", MEASURED)
def test_the_kernel_is_the_one_that_pytorch_chose_on_an_h200(of: dict[str, Any]) -> None:
    assert chosen_by_pytorch(_call(of), AUTOMATIC_KERNELS["auto"]) == of["chosen"]


@pytest.mark.parametrize("of", [of for of in MEASURED if of["group"] != "chosen"])
@pytest.mark.parametrize("kernel", ["cudnn", "flash", "efficient"])
def test_a_kernel_takes_the_calls_that_it_ran_on_an_h200(of: dict[str, Any], kernel: str) -> None:
    assert (problem_of(kernel, _call(of)) is None) == isinstance(of[kernel], dict)
