"""Which kernel PyTorch 2.11 takes for a call of scaled_dot_product_attention on a GPU.

Source: aten/src/ATen/native/transformers/{sdp_utils_cpp.h,cuda/sdp_utils.cpp}. On an H200, PyTorch's own choices
(`configs/measured/h200-attention.jsonl`) are these in every call there; tests/recorder compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dcrecord.options import HALF_PRECISION_KERNELS

_LARGEST_HEAD = 256


@dataclass(frozen=True)
class AttentionCall:
    """query, key, value [batch, heads, sequence, head], a mask that is added or says what is seen, and two flags of a call."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    causal: bool = False
    grouped: bool = False

    @property
    def half(self) -> bool:
        return self.query.dtype in (torch.bfloat16, torch.float16)


def chosen_by_pytorch(call: AttentionCall, order: tuple[str, ...]) -> str:
    """The first kernel of `order` that takes the call; the last one, math, takes all."""
    return next(kernel for kernel in order if problem_of(kernel, call) is None)


def problem_of(kernel: str, call: AttentionCall) -> str | None:
    """Why the kernel does not take the call, or None."""
    if kernel == "math":
        return None
    if kernel in HALF_PRECISION_KERNELS and not call.half:
        return f"takes bfloat16 or float16, not {str(call.query.dtype).removeprefix('torch.')}"
    if call.query.dim() != 4:
        return f"takes 4 dimensions [batch, heads, sequence, head], not {call.query.dim()}"
    if any(tensor.stride(-1) != 1 for tensor in (call.query, call.key, call.value)):
        return "takes heads that are contiguous"
    return {"flash": _problem_of_flash, "efficient": _problem_of_efficient, "cudnn": _problem_of_cudnn}[kernel](call)


def _problem_of_flash(call: AttentionCall) -> str | None:
    head = call.query.shape[-1]
    if call.mask is not None:
        return "takes no attention mask"
    if call.value.shape[-1] != head:
        return f"takes values of as many elements as the queries' {head}, not {call.value.shape[-1]}"
    if head > _LARGEST_HEAD:
        return f"takes heads of at most {_LARGEST_HEAD} elements, not {head}"
    if call.causal and call.query.shape[-2] != call.key.shape[-2]:
        return "takes causal attention with as many keys as queries"
    return None


def _problem_of_efficient(call: AttentionCall) -> str | None:
    multiple = 8 if call.half else 4
    if call.grouped and call.query.shape[1] != call.key.shape[1]:
        return "takes as many key heads as query heads"
    if call.mask is not None and call.mask.stride(-1) != 1:
        return "takes no mask whose last dimension is not contiguous"
    return _multiple_of(multiple, call)


def _problem_of_cudnn(call: AttentionCall) -> str | None:
    wide = max(call.query.shape[-1], call.value.shape[-1])
    if wide > _LARGEST_HEAD:
        return f"takes heads of at most {_LARGEST_HEAD} elements, not {wide}"
    if call.key.shape[-2] == 1:
        return "takes more than one key"
    if call.mask is not None and call.mask.requires_grad:
        return "takes no mask that is trained"
    if call.mask is not None and call.mask.dim() not in (2, 4):
        return f"takes masks of 2 or 4 dimensions, not {call.mask.dim()}"
    return _multiple_of(8, call)


def _multiple_of(multiple: int, call: AttentionCall) -> str | None:
    heads = (call.query.shape[-1], call.value.shape[-1])
    odd = next((head for head in heads if head % multiple != 0), None)
    return None if odd is None else f"takes heads of a multiple of {multiple} elements, not {odd}"
