"""Makes a trace on CPU tensors hold the operators that a trace on CUDA tensors holds.

A few composite operators look at the device of their inputs and take another way on the CPU. While a
recording runs, they are replaced at the dispatch key AutogradCPU by what PyTorch 2.11 does with CUDA
tensors, so that the graph, its autograd formulas included, is the CUDA one:

  rms_norm                       stays aten::_fused_rms_norm (the CPU decomposes it into 10 ops)
  scaled_dot_product_attention   calls an attention kernel of CUDA's (the CPU has one of its own)
  softmax, log_softmax           float16 to float32 happens inside the kernel
  native_layer_norm              keeps its statistics in float32
  convolution                    gives cuDNN's layout
  backward of three losses       gives a contiguous gradient, which fake tensors lay out as the input

Sources: aten/src/ATen/native/{layer_norm,SoftMax,transformers/attention}.cpp,
torch/_refs/__init__.py. tests/recorder/record_on_gpu.py compares the result with real CUDA traces.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._subclasses import fake_impls
from torch.nn import functional

from dcrecord.attention_choice import AttentionCall, chosen_by_pytorch, problem_of
from dcrecord.composite_dtypes import (
    LOSSES_OF_INT64,
    check_attention,
    check_batch_norm_dtypes,
    with_int64_targets,
)
from dcrecord.errors import RecorderError
from dcrecord.fake_results import results_by
from dcrecord.options import AUTOMATIC_KERNELS
from dcrecord.running_statistics import batch_norms_on_cuda

aten = torch.ops.aten

_CUDNN_COMPOSITES = (
    "ctc_loss.IntList ctc_loss.Tensor grid_sampler gru.data gru.input lstm.data lstm.input rnn_relu.data "
    "rnn_relu.input rnn_tanh.data rnn_tanh.input"
).split()


# Composites of one step of a recurrence, each one fused operator on a GPU (aten/src/ATen/native/cuda/RNN.cu).
_FUSED_COMPOSITES = {"gru_cell": "_thnn_fused_gru_cell", "lstm_cell": "_thnn_fused_lstm_cell"}


@contextmanager
def registered(kernels: dict[str, Callable[..., Any]], dispatch_key: str) -> Iterator[None]:
    """Puts `kernels` (by operator name, without namespace) at `dispatch_key` of the ATen library, for a while."""
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered kernel")
            for name, kernel in kernels.items():
                library.impl(name, kernel, dispatch_key)
        _forget_kernels(kernels)
        yield
    finally:
        library._destroy()
        _forget_kernels(kernels)


def _forget_kernels(names: Iterable[str]) -> None:
    """Operators remember which kernel they took at a key."""
    for name in names:
        packet, _, overload = name.partition(".")
        getattr(getattr(aten, packet), overload or "default")._dispatch_cache.clear()


@contextmanager
def cuda_operators(attention: str, no_dropout: bool = False) -> Iterator[Attention]:
    """Inside, operators on CPU tensors trace as they would on CUDA tensors, attention with the kernel asked for."""
    dispatched = Attention(attention, no_dropout)
    composites = {
        "batch_norm": _batch_norm,
        "rms_norm": _rms_norm,
        "scaled_dot_product_attention": dispatched,
        "softmax.int": _softmax,
        "log_softmax.int": _log_softmax,
    }
    composites |= {name: with_int64_targets(getattr(aten, name).default) for name in LOSSES_OF_INT64}
    composites |= {name: _Unavailable(name, "an operator of cuDNN") for name in _CUDNN_COMPOSITES}
    composites |= {name: _Unavailable(name, f"aten::{fused}") for name, fused in _FUSED_COMPOSITES.items()}
    # A kernel for the backend makes autograd use the operator's derivative instead of its decomposition.
    # It is never run: only fake tensors pass here, and those take their shapes from the meta kernel.
    kernels = {"_fused_rms_norm": _no_cpu_kernel}
    with registered(composites, "AutogradCPU"), registered(kernels, "CPU"), _float32_layer_norm_statistics():
        with results_on_cuda():
            yield dispatched


@contextmanager
def results_on_cuda() -> Iterator[None]:
    """Inside, fake tensors of either device have the shapes, dtypes and layouts that kernels on CUDA give."""
    # Meta kernels ask this function for the device whose results they give (embedding_bag and others).
    meta_kernels_of_cuda = patch("torch._meta_registrations.device_hint", lambda _: "cuda")
    with meta_kernels_of_cuda, _cudnn_layouts(), batch_norms_on_cuda():
        with _contiguous_loss_gradients(), _log_sigmoid_without_buffer():
            yield


class _Unavailable:
    """A composite that calls an operator on a GPU which has other outputs than the CPU's.

    called   what is said of that operator
    """

    def __init__(self, name: str, called: str) -> None:
        self.name = name.partition(".")[0]
        self.called = called

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RecorderError(
            f"{self.name} calls {self.called} on a GPU, which cannot be recorded without one: expected a module "
            "without it (attention in place of recurrence)"
        )


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    _cudnn_enabled: bool,
) -> Tensor:
    """PyTorch's own kernel, which its selection takes where cuDNN has none (_select_batch_norm_backend in
    aten/src/ATen/native/Normalization.cpp): bfloat16, float16 with parameters of float16, rows without a place."""
    check_batch_norm_dtypes(input, (weight, bias, running_mean, running_var))
    dtypes = {tensor.dtype for tensor in (input, weight) if tensor is not None}
    native = torch.bfloat16 in dtypes or weight is None or bias is None or input.dim() < 3
    if not native and dtypes != {torch.float16}:
        raise RecorderError(
            "batch_norm of float32 parameters calls an operator of cuDNN on a GPU, which cannot be recorded without one: "
            "expected --dtype bfloat16 or --autocast bfloat16, or LayerNorm or GroupNorm in its place"
        )
    return aten.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _no_cpu_kernel(*_: Any) -> Any:
    raise AssertionError("a CUDA operator was run on CPU data while recording")


def _rms_norm(input: Tensor, normalized_shape: list[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    if weight is not None and weight.dtype is not input.dtype:
        return aten.rms_norm.default.decompose(input, normalized_shape, weight, eps)
    return aten._fused_rms_norm(input, normalized_shape, weight, eps)[0]


def _softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    if self.dtype is torch.float16 and dtype is torch.float32:
        return aten._softmax(self, dim, True)
    return aten._softmax(_to_type(self, dtype), dim, False)


def _log_softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    if self.dtype is torch.float16 and dtype is torch.float32:
        return aten._log_softmax(self, dim, True)
    return aten._log_softmax(_to_type(self, dtype), dim, False)


def _to_type(self: Tensor, dtype: torch.dtype | None) -> Tensor:
    """at::Tensor::toType, which names layout and device, too; the operators keep that as arguments."""
    return self if dtype is None else aten.to.dtype_layout(self, dtype=dtype, layout=self.layout, device=self.device)


@contextmanager
def _float32_layer_norm_statistics() -> Iterator[None]:
    """On CUDA native_layer_norm returns mean and reciprocal deviation in float32 for half-precision inputs."""
    operator = aten.native_layer_norm.default
    before = fake_impls.op_implementations_dict[operator]

    def as_on_cuda(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        output, mean, deviation = before(fake_mode, func, *args, **kwargs)
        if output.dtype in (torch.float16, torch.bfloat16):
            mean, deviation = mean.to(torch.float32), deviation.to(torch.float32)
        return output, mean, deviation

    with patch.dict(fake_impls.op_implementations_dict, {operator: as_on_cuda}):
        yield


@contextmanager
def _cudnn_layouts() -> Iterator[None]:
    """Convolutions give the layout that cuDNN gives: channels last where input or weight has it.

    Without a GPU PyTorch finds no cuDNN for half precision and takes another backend's layout, also for fake CUDA tensors.
    Source: cudnn_conv_suggest_memory_format in aten/src/ATen/native/ConvUtils.h.
    """
    operators = (aten.convolution.default, aten.convolution_backward.default)
    before = {operator: fake_impls.op_implementations_dict[operator] for operator in operators}

    def as_on_cuda(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        results = before[func](fake_mode, func, *args, **kwargs)
        first = 0 if func is aten.convolution.default else 1  # behind the result's gradient
        layout = _convolution_layout(args[first], args[first + 1])
        if func is aten.convolution.default:
            return results.to(memory_format=layout)
        gradients = [None if result is None else result.to(memory_format=layout) for result in results[:2]]
        return (*gradients, results[2])

    with patch.dict(fake_impls.op_implementations_dict, dict.fromkeys(operators, as_on_cuda)):
        yield


@contextmanager
def _contiguous_loss_gradients() -> Iterator[None]:
    """The gradient of these losses is made by zeros_like(input, LEGACY_CONTIGUOUS_MEMORY_FORMAT), on the CPU, too; the meta
    kernel is a decomposition, whose result lies as its operands.

    Source: aten/src/ATen/native/Loss.cpp.
    """
    losses = (aten.mse_loss_backward, aten.smooth_l1_loss_backward, aten.huber_loss_backward)

    def contiguous(fake_mode: Any, _: Any, gradient: Tensor, input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        with fake_mode:
            return torch.empty_like(input, memory_format=torch.contiguous_format)

    rules: dict[Any, Any] = {loss.default: contiguous for loss in losses}
    with results_by(rules):
        yield


@contextmanager
def _log_sigmoid_without_buffer() -> Iterator[None]:
    """CUDA's kernel needs no buffer for the backward (aten/src/ATen/native/cuda/Activation.cpp)."""

    def forward(fake_mode: Any, _: Any, input: Tensor) -> tuple[Tensor, Tensor]:
        with fake_mode:
            return torch.empty_like(input), input.new_empty(0)

    rules: dict[Any, Any] = {aten.log_sigmoid_forward.default: forward}
    with results_by(rules):
        yield


def _convolution_layout(input: Tensor, weight: Tensor) -> torch.memory_format:
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.dim())
    if last is None or torch.float64 in (input.dtype, weight.dtype):
        return torch.contiguous_format
    found = any(torch._prims_common.suggest_memory_format(tensor) is last for tensor in (input, weight))
    return last if found else torch.contiguous_format


class Attention:
    """scaled_dot_product_attention as PyTorch carries it out on CUDA once its backend is chosen.

    used   the kernels of the calls so far
    """

    def __init__(self, kernel: str, no_dropout: bool = False) -> None:
        self.kernel = kernel
        self.no_dropout = no_dropout
        self.used: set[str] = set()

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        call = AttentionCall(query, key, value, attn_mask, is_causal, enable_gqa)
        check_attention(call)
        kernel = self._choose(call)
        self.used.add(kernel)
        dropout_p = 0.0 if self.no_dropout else dropout_p
        run = {
            "flash": _flash_attention,
            "efficient": _efficient_attention,
            "cudnn": _cudnn_attention,
            "math": _math_attention,
        }[kernel]
        return run(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)

    def _choose(self, call: AttentionCall) -> str:
        """Refuses what makes PyTorch say "no available kernel" on a GPU when only this kernel is allowed."""
        if self.kernel in AUTOMATIC_KERNELS:
            return chosen_by_pytorch(call, AUTOMATIC_KERNELS[self.kernel])
        problem = problem_of(self.kernel, call)
        if problem is not None:
            another = chosen_by_pytorch(call, AUTOMATIC_KERNELS["auto"])
            raise RecorderError(
                f"the {self.kernel} attention kernel {problem}: expected --attention auto, "
                f"which takes the {another} kernel here"
            )
        return self.kernel


def _needs_logsumexp(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))


def _additive_mask(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A boolean mask as the 0 or -inf that is added to the scores."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    minus_infinity = aten.scalar_tensor(-math.inf, dtype=dtype, device=mask.device)
    return torch.where(mask, 0.0, minus_infinity)


def _flash_attention(
    query: Tensor, key: Tensor, value: Tensor, _mask: None, dropout: float, causal: bool, scale: float | None, _gqa: bool
) -> Tensor:
    head = query.shape[-1]
    padding = -head % 8
    if padding:
        query, key, value = (functional.pad(tensor, (0, padding)) for tensor in (query, key, value))
    scale = 1.0 / math.sqrt(head) if scale is None else scale
    output = aten._scaled_dot_product_flash_attention(query, key, value, dropout, causal, False, scale=scale)[0]
    return aten.slice(output, -1, 0, head) if padding else output


def _efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    _gqa: bool,
) -> Tensor:
    bias = _additive_mask(mask, query.dtype)
    if bias is not None:
        bias = _aligned(bias).expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, bias, _needs_logsumexp(query, key, value), dropout, causal, scale=scale
    )[0]


def _aligned(bias: Tensor) -> Tensor:
    """The kernel reads 8 elements at a time: rows of the bias start at multiples of 8."""
    if bias.stride(-1) == 1 and all(stride % 8 == 0 for stride in bias.stride()[:-1]):
        return bias
    length = bias.shape[-1]
    return aten.slice(functional.pad(bias, (0, 8 - length % 8)), -1, 0, length)


def _cudnn_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    _gqa: bool,
) -> Tensor:
    bias = mask
    if mask is not None and mask.dtype is torch.bool:
        lowest = aten.scalar_tensor(-65504.0, dtype=query.dtype, device=mask.device)
        bias = torch.where(mask, 0.0, lowest)
    return aten._scaled_dot_product_cudnn_attention(
        query, key, value, bias, _needs_logsumexp(query, key, value), dropout, causal, False, scale=scale
    )[0]


def _math_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    gqa: bool,
) -> Tensor:
    bias = _additive_mask(mask, query.dtype)
    return aten._scaled_dot_product_attention_math(
        query, key, value, bias, dropout, causal, None, scale=scale, enable_gqa=gqa
    )[0]
