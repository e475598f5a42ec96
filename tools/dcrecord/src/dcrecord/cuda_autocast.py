"""CUDA's autocast rules for a trace on CPU tensors.

Autocast has a rule per operator and device type. CPU tensors get the CPU's rules, which differ: CUDA
computes layer norms, powers, exponentials and sums in float32, for example, where the CPU leaves the
dtype alone. While a recording runs, the CPU's rules are replaced by CUDA's (the lists of
ATen/autocast_mode.h in PyTorch 2.11; a test compares them with the installed header).

Operators with the same rule on both keep PyTorch's own kernel, and with it PyTorch's cache of cast
weights; they are the ones that multiply weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from dcrecord.cuda_operators import registered

_KEY = "AutocastCPU"

# Computed in the dtype of autocast.
LOWER_PRECISION = (
    "_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input "
    "conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm "
    "baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell "
    "rnn_tanh_cell rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention"
).split()

# Inputs are cast to float32.
FLOAT32 = (
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar "
    "pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm frobenius_norm.dim nuclear_norm "
    "nuclear_norm.dim cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d "
    "hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss "
    "multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss "
    "binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d "
    "_upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d "
    "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d "
    "upsample_bicubic2d _upsample_bicubic2d_aa"
).split()

# The dtype argument becomes float32 where none is given.
FLOAT32_BY_DTYPE_ARGUMENT = (
    "prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm "
    "linalg_matrix_norm.str_ord sum sum.dim_IntList"
).split()

# Inputs are cast to the widest dtype among them.
WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()

# Overloads with named dimensions, and cuDNN's own operators, never occur in a trace of CPU tensors.
NOT_TRACED = (
    "prod.dim_Dimname softmax.Dimname log_softmax.Dimname cumprod.dimname cumsum.dimname sum.dim_DimnameList "
    "norm.names_ScalarOpt_dim _cudnn_rnn cudnn_convolution cudnn_convolution_transpose"
).split()

# `norm` without a dtype is redirected to the overload that has one.
NORM = ("norm.Scalar", "norm.ScalarOpt_dim")

_FORBIDDEN = "binary_cross_entropy"


@contextmanager
def cuda_autocast_rules() -> Iterator[None]:
    """Inside, `torch.autocast("cpu", ...)` follows CUDA's rules."""
    of_cpu = _operators_with_rule("AutocastCPU")
    of_cuda = _operators_with_rule("AutocastCUDA")
    kernels: dict[str, Callable[..., Any]] = {name: torch.library.fallthrough_kernel for name in of_cpu - of_cuda}
    kernels |= {name: _LowerPrecision(name) for name in LOWER_PRECISION if name not in of_cpu}
    kernels |= {name: _Float32(name) for name in FLOAT32 if name not in of_cpu}
    kernels |= {name: _Float32ByDtypeArgument(name) for name in FLOAT32_BY_DTYPE_ARGUMENT}
    kernels |= {name: _Widest(name) for name in WIDEST}
    kernels |= {name: _Norm(name) for name in NORM}
    kernels[_FORBIDDEN] = _forbidden
    with ExitStack() as stack:
        stack.enter_context(registered(dict(sorted(kernels.items())), _KEY))
        yield


def _operators_with_rule(dispatch_key: str) -> set[str]:
    names = torch._C._dispatch_get_registrations_for_dispatch_key(dispatch_key)
    return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}


def _overload(name: str) -> torch._ops.OpOverload:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _without_autocast() -> torch._C._ExcludeDispatchKeyGuard:
    return torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU))


def _takes_part(leaf: Any) -> bool:
    """Autocast leaves integers and float64 alone."""
    return isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.dtype is not torch.float64


def _cast(args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> tuple[Any, dict[str, Any]]:
    """Casts the last argument first, as PyTorch's compiled code does; the backward's order follows from that."""

    def cast(tree: Any) -> Any:
        return tree_map(lambda leaf: leaf.to(dtype) if _takes_part(leaf) else leaf, tree)

    last_first = [cast(value) for value in reversed((*args, *kwargs.values()))]
    values = list(reversed(last_first))
    return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :]))


class _Rule:
    """A kernel at the autocast key: changes the arguments, then calls the operator below autocast."""

    def __init__(self, name: str) -> None:
        self.operator = _overload(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with _without_autocast():
            args, kwargs = self.prepare(args, kwargs)
            return self.operator(*args, **kwargs)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        raise NotImplementedError


class _LowerPrecision(_Rule):
    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return _cast(args, kwargs, torch.get_autocast_dtype("cpu"))


class _Float32(_Rule):
    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return _cast(args, kwargs, torch.float32)


class _Widest(_Rule):
    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        dtypes = {leaf.dtype for leaf in tree_leaves((args, kwargs)) if _takes_part(leaf)}
        widest = torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cpu")
        return _cast(args, kwargs, widest)


class _Float32ByDtypeArgument(_Rule):
    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if not _takes_part(args[0]):
            return args, kwargs
        position = [argument.name for argument in self.operator._schema.arguments].index("dtype")
        if position < len(args):
            given = args[position] if args[position] is not None else torch.float32
            return (*args[:position], given, *args[position + 1 :]), kwargs
        given = kwargs.get("dtype")
        return args, {**kwargs, "dtype": torch.float32 if given is None else given}


class _Norm(_Rule):
    """Calls the overload with a dtype, whose schema is (self, p, dim, keepdim, *, dtype) or (self, p, *, dtype)."""

    def __call__(self, self_: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
        with _without_autocast():
            if not _takes_part(self_):
                return self.operator(self_, p) if dim is None else self.operator(self_, p, dim, keepdim)
            if self.operator._schema.overload_name == "Scalar":
                return torch.ops.aten.norm.ScalarOpt_dtype(self_, p, dtype=torch.float32)
            return torch.ops.aten.norm.ScalarOpt_dim_dtype(self_, p, dim, keepdim, dtype=torch.float32)


def _forbidden(*_: Any, **__: Any) -> Any:
    raise RuntimeError("binary_cross_entropy is unsafe to autocast: use binary_cross_entropy_with_logits")
