"""Results of fake tensors as PyTorch's kernels give them, where its meta kernels give others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from torch._decomp import meta_table
from torch._subclasses import fake_impls


@contextmanager
def results_by(rules: dict[Any, Callable[..., Any]]) -> Iterator[None]:
    """Inside, fake tensors have their results from `rules`, which are called with the fake mode, the operator and its
    arguments."""
    # Where an operator has an entry in the table of meta kernels, fake tensors ask the rules before its decomposition.
    with patch.dict(fake_impls.op_implementations_dict, rules), patch.dict(meta_table, rules):
        yield
