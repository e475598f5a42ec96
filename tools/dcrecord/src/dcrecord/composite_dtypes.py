"""Dtypes, and shapes of attention, that PyTorch's composite operators refuse on a GPU before they call a kernel.

The recorder has composites of its own in their place (cuda_operators.py), which ask here first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from dcrecord.arguments import plain_name
from dcrecord.attention_choice import AttentionCall
from dcrecord.errors import RecorderError

# Losses whose kernels take classes of int64 only; fake tensors have no kernels of them, but decompositions.
LOSSES_OF_INT64 = ("multi_margin_loss", "multilabel_margin_loss_forward")


def batch_norm_takes(input: Tensor, others: Sequence[Tensor | None]) -> bool:
    """Whether kernels on CUDA take an input with weights and statistics (`others`): all of the input's dtype, or those of
    float32 with an input of half precision."""
    dtypes = {tensor.dtype for tensor in others if tensor is not None}
    half = input.dtype in (torch.bfloat16, torch.float16)
    return not dtypes or dtypes == {input.dtype} or (half and dtypes == {torch.float32})


def check_batch_norm_dtypes(input: Tensor, others: Sequence[Tensor | None]) -> None:
    if not batch_norm_takes(input, others):
        names = sorted({plain_name(tensor.dtype) for tensor in others if tensor is not None})
        raise RecorderError(
            f"batch_norm does not take an input of {plain_name(input.dtype)} with weights and statistics of {', '.join(names)} "
            "on a GPU; expected one dtype, or float32 with an input of half precision"
        )


def check_attention(call: AttentionCall) -> None:
    """What validate_sdpa_input in aten/src/ATen/native/transformers/attention.cpp refuses, and kernels with an added mask."""
    names = [plain_name(tensor.dtype) for tensor in (call.query, call.key, call.value)]
    if len(set(names)) > 1:
        raise RecorderError(
            f"scaled_dot_product_attention does not take query, key and value of {', '.join(names)}; expected one dtype"
        )
    if call.mask is not None and call.mask.dtype not in (torch.bool, call.query.dtype):
        raise RecorderError(
            f"scaled_dot_product_attention does not take a mask of {plain_name(call.mask.dtype)} with a query of {names[0]} on "
            f"a GPU; expected bool or {names[0]}"
        )
    _check_shapes(call)


def _check_shapes(call: AttentionCall) -> None:
    """What a kernel would read beyond: its fake results have the shape of the query, whatever key and value are."""
    query, key, value = (tuple(tensor.shape) for tensor in (call.query, call.key, call.value))
    if query[-1] != key[-1] or key[-2] != value[-2] or not _heads_match(query, key, value, call.grouped):
        shapes = ", ".join(str(list(shape)) for shape in (query, key, value))
        raise RecorderError(
            f"scaled_dot_product_attention does not take query, key and value of {shapes}{' in groups' if call.grouped else ''}; "
            "expected as many elements in each head, as many keys as values, and as many heads, or in groups a multiple of "
            "the key heads as query heads"
        )


def _heads_match(query: tuple[int, ...], key: tuple[int, ...], value: tuple[int, ...], grouped: bool) -> bool:
    """Batch and heads: each key head serves as many query heads in groups; else what is not the same is broadcast."""
    if grouped and len(query) >= 3:
        return all(other[-3] != 0 and query[-3] % other[-3] == 0 for other in (key, value))
    lengths = [set(each) - {1} for each in zip_longest(*(reversed(shape[:-2]) for shape in (query, key, value)), fillvalue=1)]
    return all(len(each) <= 1 for each in lengths)


def with_int64_targets(operator: Any) -> Callable[..., Tensor]:
    """The operator, one of LOSSES_OF_INT64, where its classes are int64."""
    decomposition = get_decompositions([operator])[operator]

    def loss(self: Tensor, target: Tensor, *more: Any, **named: Any) -> Tensor:
        if target.dtype is not torch.int64:
            raise RecorderError(
                f"{operator._schema.name} does not take classes of {plain_name(target.dtype)} on a GPU; expected int64"
            )
        return decomposition(self, target, *more, **named)

    return loss
