"""Calls of torch.nn's modules, losses and functions, each in several dtypes, and what eager PyTorch says of each.

  python3 tests/recorder/sweep/eager_calls.py --device cuda --out table.json

Needs torch alone. The table holds, for every call, whether forward and backward run or what they raise; and for every
operator of ATen that ran underneath, which dtypes of its tensors it takes. sweep.py records the same calls.
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_BROKEN = 77  # exit code of a worker whose GPU context is lost


@dataclass(frozen=True)
class Input:
    """A tensor to make: normal floats, floats in (0, 1), integers below `high`, or bools."""

    kind: str
    shape: tuple[int, ...]
    high: int = 0

    def make(self, dtype: torch.dtype, integer: torch.dtype) -> torch.Tensor:
        if self.kind == "normal":
            return torch.randn(self.shape).to(dtype)
        if self.kind == "unit":
            return (torch.rand(self.shape) * 0.8 + 0.1).to(dtype)
        if self.kind == "integer":
            return torch.randint(0, self.high, self.shape).to(integer)
        return torch.ones(self.shape, dtype=torch.bool).tril()


def n(*shape: int) -> Input:
    return Input("normal", shape)


def u(*shape: int) -> Input:
    return Input("unit", shape)


def i(high: int, *shape: int) -> Input:
    return Input("integer", shape, high)


def b(*shape: int) -> Input:
    return Input("bool", shape)


def _unary(*names: str) -> dict[str, Any]:
    return {name: (getattr(nn, name), n(4, 8)) for name in names}


def _over(names: str, make: Callable[[Any], nn.Module], *inputs: Input) -> dict[str, Any]:
    return {name: ((lambda kind=getattr(nn, name): make(kind)), *inputs) for name in names.split()}


# By name: what makes a module, and its inputs.
MODULES: dict[str, Any] = {
    **_unary(*"ReLU ReLU6 ELU CELU SELU GELU SiLU Mish Sigmoid Tanh Softplus Softsign Hardtanh Hardswish".split()),
    **_unary(*"Hardsigmoid LeakyReLU LogSigmoid Softshrink Hardshrink Tanhshrink PReLU GLU Identity".split()),
    "Threshold": (lambda: nn.Threshold(0.1, 0.0), n(4, 8)),
    **_over("Softmax LogSoftmax Softmin", lambda kind: kind(dim=-1), n(4, 8)),
    "Linear": (lambda: nn.Linear(8, 6), n(4, 8)),
    "Linear without bias": (lambda: nn.Linear(8, 6, bias=False), n(2, 4, 8)),
    "Bilinear": (lambda: nn.Bilinear(8, 8, 4), n(4, 8), n(4, 8)),
    "Embedding": (lambda: nn.Embedding(10, 8), i(10, 2, 4)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(10, 8, mode="sum"), i(10, 2, 4)),
    "EmbeddingBag mean": (lambda: nn.EmbeddingBag(10, 8), i(10, 2, 4)),
    "EmbeddingBag max": (lambda: nn.EmbeddingBag(10, 8, mode="max"), i(10, 2, 4)),
    "EmbeddingBag weighted": (lambda: _WeightedBag(), i(10, 2, 4), u(2, 4)),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3), n(2, 4, 9)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3), n(2, 4, 9, 9)),
    "Conv2d grouped": (lambda: nn.Conv2d(4, 8, 3, groups=2, bias=False), n(2, 4, 9, 9)),
    "Conv3d": (lambda: nn.Conv3d(4, 6, 3), n(2, 4, 5, 5, 5)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3), n(2, 4, 9)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3), n(2, 4, 9, 9)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(4, 6, 3), n(2, 4, 5, 5, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(8), n(4, 8)),
    "LayerNorm without bias": (lambda: nn.LayerNorm(8, bias=False), n(4, 8)),
    "LayerNorm without weights": (lambda: nn.LayerNorm(8, elementwise_affine=False), n(4, 8)),
    "RMSNorm": (lambda: nn.RMSNorm(8), n(4, 8)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 8), n(4, 8, 5)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(8), n(4, 8)),
    "BatchNorm1d places": (lambda: nn.BatchNorm1d(8), n(4, 8, 5)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(8), n(4, 8, 5, 5)),
    "BatchNorm3d": (lambda: nn.BatchNorm3d(8), n(4, 8, 3, 3, 3)),
    "BatchNorm2d in evaluation": (lambda: nn.BatchNorm2d(8).eval(), n(4, 8, 5, 5)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(8, affine=True), n(4, 8, 5)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(8), n(4, 8, 5, 5)),
    "InstanceNorm3d": (lambda: nn.InstanceNorm3d(8, affine=True), n(4, 8, 3, 3, 3)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), n(4, 8, 5, 5)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), n(4, 8, 5, 5)),
    **_over("MaxPool1d AvgPool1d", lambda kind: kind(2), n(2, 4, 8)),
    **_over("MaxPool2d AvgPool2d", lambda kind: kind(2), n(2, 4, 8, 8)),
    **_over("MaxPool3d AvgPool3d", lambda kind: kind(2), n(2, 4, 4, 4, 4)),
    **_over("AdaptiveAvgPool1d AdaptiveMaxPool1d", lambda kind: kind(3), n(2, 4, 8)),
    **_over("AdaptiveAvgPool2d AdaptiveMaxPool2d", lambda kind: kind(3), n(2, 4, 8, 8)),
    **_over("AdaptiveAvgPool3d AdaptiveMaxPool3d", lambda kind: kind(2), n(2, 4, 4, 4, 4)),
    "LPPool1d": (lambda: nn.LPPool1d(2, 2), u(2, 4, 8)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), u(2, 4, 8, 8)),
    **_over("ReflectionPad1d ReplicationPad1d ZeroPad1d CircularPad1d", lambda kind: kind(1), n(2, 4, 8)),
    **_over("ReflectionPad2d ReplicationPad2d ZeroPad2d CircularPad2d", lambda kind: kind(1), n(2, 4, 8, 8)),
    **_over("ReflectionPad3d ReplicationPad3d ZeroPad3d CircularPad3d", lambda kind: kind(1), n(2, 4, 4, 4, 4)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d(1, 0.5), n(2, 4, 8, 8)),
    "Upsample nearest": (lambda: nn.Upsample(scale_factor=2), n(2, 4, 5, 5)),
    "Upsample linear": (lambda: nn.Upsample(scale_factor=2, mode="linear"), n(2, 4, 5)),
    "Upsample bilinear": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), n(2, 4, 5, 5)),
    "Upsample bicubic": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), n(2, 4, 5, 5)),
    "Upsample trilinear": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), n(2, 4, 3, 3, 3)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), n(2, 4, 5, 5)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), n(2, 4, 4, 4)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), n(2, 4, 4, 4)),
    "Fold": (lambda: nn.Fold((4, 4), 2), n(2, 16, 9)),
    "Unfold": (lambda: nn.Unfold(2), n(2, 4, 4, 4)),
    "Flatten": (lambda: nn.Flatten(), n(2, 4, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), n(2, 4, 4)),
    "CosineSimilarity": (lambda: nn.CosineSimilarity(), n(4, 8), n(4, 8)),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(), n(4, 8), n(4, 8)),
    "RNNCell": (lambda: nn.RNNCell(8, 8), n(4, 8), n(4, 8)),
    "GRUCell": (lambda: nn.GRUCell(8, 8), n(4, 8), n(4, 8)),
    "LSTMCell": (lambda: nn.LSTMCell(8, 8), n(4, 8)),
    **_over("RNN GRU LSTM", lambda kind: kind(8, 8, batch_first=True), n(2, 4, 8)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), n(2, 4, 8), n(2, 4, 8), n(2, 4, 8)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), n(2, 4, 8)),
    "TransformerDecoderLayer": (
        lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True),
        n(2, 4, 8),
        n(2, 4, 8),
    ),
    "Dropout of 0": (lambda: nn.Dropout(0.0), n(4, 8)),
    "L1Loss": (nn.L1Loss, n(4, 8), n(4, 8)),
    "MSELoss": (nn.MSELoss, n(4, 8), n(4, 8)),
    "HuberLoss": (nn.HuberLoss, n(4, 8), n(4, 8)),
    "SmoothL1Loss": (nn.SmoothL1Loss, n(4, 8), n(4, 8)),
    "SoftMarginLoss": (lambda: lambda x, y: functional.soft_margin_loss(x, y.detach()), n(4, 8), n(4, 8)),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), n(4, 8), u(4, 8)),
    "BCELoss": (nn.BCELoss, u(4, 8), u(4, 8)),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, n(4, 8), u(4, 8)),
    "BCEWithLogitsLoss weighted": (lambda: nn.BCEWithLogitsLoss(pos_weight=torch.ones(8)), n(4, 8), u(4, 8)),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, n(4, 8), u(4, 8)),
    "GaussianNLLLoss": (nn.GaussianNLLLoss, n(4, 8), n(4, 8), u(4, 8)),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, n(4, 8), n(4, 8)),
    "MarginRankingLoss": (nn.MarginRankingLoss, n(4), n(4), n(4)),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss, n(4, 8), n(4, 8), n(4)),
    "TripletMarginLoss": (nn.TripletMarginLoss, n(4, 8), n(4, 8), n(4, 8)),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, n(4, 8), n(4, 8), n(4, 8)),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, n(4, 8), i(8, 4)),
    "CrossEntropyLoss smoothed": (lambda: nn.CrossEntropyLoss(label_smoothing=0.1), n(4, 8), i(8, 4)),
    "CrossEntropyLoss weighted": (lambda: nn.CrossEntropyLoss(weight=torch.ones(8)), n(4, 8), i(8, 4)),
    "CrossEntropyLoss of probabilities": (nn.CrossEntropyLoss, n(4, 8), u(4, 8)),
    "CrossEntropyLoss of images": (nn.CrossEntropyLoss, n(2, 8, 3, 3), i(8, 2, 3, 3)),
    "NLLLoss": (nn.NLLLoss, n(4, 8), i(8, 4)),
    "NLLLoss weighted": (lambda: nn.NLLLoss(weight=torch.ones(8)), n(4, 8), i(8, 4)),
    "MultiMarginLoss": (nn.MultiMarginLoss, n(4, 8), i(8, 4)),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, n(4, 8), i(8, 4, 8)),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, n(4, 8), u(4, 8)),
}


class _WeightedBag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 8, mode="sum")

    def forward(self, words: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        return self.bag(words, per_sample_weights=weights)


def _attention(**settings: Any) -> Callable[..., torch.Tensor]:
    def attend(query: Any, key: Any, value: Any, mask: Any = None) -> torch.Tensor:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, **settings)

    return attend


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return torch.native_batch_norm(x, weight, bias, mean.detach(), variance.detach(), True, 0.1, 1e-5)[0]


_QUERIES = n(2, 2, 16, 16)

# By name: a function, and its inputs.
FUNCTIONS: dict[str, Any] = {
    "mm": (torch.mm, n(4, 8), n(8, 6)),
    "bmm": (torch.bmm, n(2, 4, 8), n(2, 8, 6)),
    "matmul": (torch.matmul, n(2, 4, 8), n(8, 6)),
    "mv": (torch.mv, n(4, 8), n(8)),
    "dot": (torch.dot, n(8), n(8)),
    "outer": (torch.outer, n(4), n(8)),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), n(2, 4, 8), n(2, 6, 8)),
    "tensordot": (lambda x, y: torch.tensordot(x, y, dims=1), n(4, 8), n(8, 6)),
    "chain_matmul": (lambda x, y, z: torch.linalg.multi_dot((x, y, z)), n(4, 8), n(8, 6), n(6, 5)),
    "addmm": (torch.addmm, n(4, 6), n(4, 8), n(8, 6)),
    "addbmm": (torch.addbmm, n(4, 6), n(2, 4, 8), n(2, 8, 6)),
    "baddbmm": (torch.baddbmm, n(2, 4, 6), n(2, 4, 8), n(2, 8, 6)),
    "addmv": (torch.addmv, n(4), n(4, 8), n(8)),
    "addr": (torch.addr, n(4, 8), n(4), n(8)),
    "linear": (functional.linear, n(4, 8), n(6, 8), n(6)),
    "bilinear": (functional.bilinear, n(4, 8), n(4, 8), n(3, 8, 8)),
    "attention": (_attention(), _QUERIES, _QUERIES, _QUERIES),
    "causal attention": (_attention(is_causal=True), _QUERIES, _QUERIES, _QUERIES),
    "attention with a mask": (_attention(), _QUERIES, _QUERIES, _QUERIES, n(16, 16)),
    "attention with a bool mask": (_attention(), _QUERIES, _QUERIES, _QUERIES, b(16, 16)),
    "attention of odd heads": (_attention(), n(2, 2, 16, 7), n(2, 2, 16, 7), n(2, 2, 16, 7)),
    "layer_norm": (lambda x, w, c: functional.layer_norm(x, (8,), w, c), n(4, 8), n(8), n(8)),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (8,), w), n(4, 8), n(8)),
    "group_norm": (lambda x, w, c: functional.group_norm(x, 2, w, c), n(4, 8, 5), n(8), n(8)),
    "native_batch_norm": (_batch_norm, n(4, 8, 5), n(8), n(8), n(8), u(8)),
    "conv2d": (functional.conv2d, n(2, 4, 9, 9), n(6, 4, 3, 3), n(6)),
    "prelu": (functional.prelu, n(4, 8), u(8)),
    "add": (torch.add, n(4, 8), n(4, 8)),
    "mul": (torch.mul, n(4, 8), n(8)),
    "div": (torch.div, n(4, 8), u(4, 8)),
    "pow": (torch.pow, u(4, 8), n(4, 8)),
    "maximum": (torch.maximum, n(4, 8), n(4, 8)),
    "atan2": (torch.atan2, n(4, 8), n(4, 8)),
    "lerp": (torch.lerp, n(4, 8), n(4, 8), u(4, 8)),
    "addcmul": (torch.addcmul, n(4, 8), n(4, 8), n(4, 8)),
    "addcdiv": (torch.addcdiv, n(4, 8), n(4, 8), u(4, 8)),
    "where": (torch.where, b(8, 8), n(8, 8), n(8, 8)),
    "cat": (lambda x, y: torch.cat((x, y)), n(4, 8), n(4, 8)),
    "stack": (lambda x, y: torch.stack((x, y)), n(4, 8), n(4, 8)),
    "cross": (lambda x, y: torch.linalg.cross(x, y), n(4, 3), n(4, 3)),
    "cdist": (torch.cdist, n(4, 8), n(5, 8)),
    "dist": (torch.dist, n(4, 8), n(4, 8)),
    "embedding": (lambda x, w: functional.embedding(x, w), i(10, 4), n(10, 8)),
    "gather": (lambda x, k: torch.gather(x, 1, k), n(4, 8), i(8, 4, 3)),
    "scatter": (lambda x, k, y: x.scatter(1, k, y), n(4, 8), i(8, 4, 3), n(4, 3)),
    "scatter_add": (lambda x, k, y: x.scatter_add(1, k, y), n(4, 8), i(8, 4, 3), n(4, 3)),
    "scatter_reduce": (lambda x, k, y: x.scatter_reduce(1, k, y, "mean"), n(4, 8), i(8, 4, 3), n(4, 3)),
    "index_select": (lambda x, k: x.index_select(0, k), n(4, 8), i(4, 3)),
    "index_add": (lambda x, k, y: x.index_add(0, k, y), n(4, 8), i(4, 3), n(3, 8)),
    "index_copy": (lambda x, k, y: x.index_copy(0, k, y), n(4, 8), i(4, 1), n(1, 8)),
    "index_fill": (lambda x, k: x.index_fill(0, k, 1.0), n(4, 8), i(4, 3)),
    "index_reduce": (lambda x, k, y: x.index_reduce(0, k, y, "mean"), n(4, 8), i(4, 3), n(3, 8)),
    "index": (lambda x, k: x[k], n(4, 8), i(4, 3)),
    "index_put": (lambda x, k, y: x.index_put((k,), y), n(4, 8), i(4, 1), n(1, 8)),
    "index_put accumulated": (lambda x, k, y: x.index_put((k,), y, accumulate=True), n(4, 8), i(4, 3), n(3, 8)),
    "take_along_dim": (lambda x, k: torch.take_along_dim(x, k, 1), n(4, 8), i(8, 4, 3)),
    "take": (lambda x, k: torch.take(x, k), n(4, 8), i(32, 3)),
    "one_hot": (lambda x, k: x * functional.one_hot(k, 8), n(4, 8), i(8, 4)),
    "masked_fill": (lambda x, m: x.masked_fill(m, 0.5), n(8, 8), b(8, 8)),
    "masked_scatter": (lambda x, m, y: x.masked_scatter(m, y), n(8, 8), b(8, 8), n(8, 8)),
    "select_scatter": (lambda x, y: x.select_scatter(y, 0, 1), n(4, 8), n(8)),
    "slice_scatter": (lambda x, y: x.slice_scatter(y, 0, 1, 3), n(4, 8), n(2, 8)),
    "diagonal_scatter": (lambda x, y: x.diagonal_scatter(y), n(8, 8), n(8)),
    "cumsum": (lambda x: x.cumsum(1), n(4, 8)),
    "cumprod": (lambda x: x.cumprod(1), u(4, 8)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), n(4, 8)),
    "cummax": (lambda x: x.cummax(1).values, n(4, 8)),
    "logsumexp": (lambda x: x.logsumexp(1), n(4, 8)),
    "sort": (lambda x: x.sort().values, n(4, 8)),
    "topk": (lambda x: x.topk(3).values, n(4, 8)),
    "kthvalue": (lambda x: x.kthvalue(3).values, n(4, 8)),
    "median": (lambda x: x.median(1).values, n(4, 8)),
    "std": (lambda x: x.std(1), n(4, 8)),
    "norm": (lambda x: x.norm(dim=1), n(4, 8)),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), n(4, 8)),
    "prod": (lambda x: x.prod(1), u(4, 8)),
    "tril": (torch.tril, n(8, 8)),
    "roll": (lambda x: x.roll(1, 0), n(4, 8)),
    "unsafe_chunk": (lambda x: x.unsafe_chunk(2, 1)[0], n(4, 8)),
    "erf": (torch.erf, n(4, 8)),
    "erfinv": (torch.erfinv, u(4, 8)),
    "lgamma": (torch.lgamma, u(4, 8)),
    "digamma": (torch.digamma, u(4, 8)),
    "exp": (torch.exp, n(4, 8)),
    "rsqrt": (torch.rsqrt, u(4, 8)),
    "remainder": (torch.remainder, n(4, 8), u(4, 8)),
    "fft": (lambda x: torch.fft.rfft(x).abs(), n(4, 8)),
    "inverse": (lambda x: torch.linalg.inv(x + 4 * torch.eye(4, dtype=x.dtype, device=x.device)), n(4, 4)),
    "solve": (lambda x, y: torch.linalg.solve(x, y), n(4, 4), n(4, 2)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT + 4 * torch.eye(4, dtype=x.dtype, device=x.device)), n(4, 4)),
    "det": (torch.linalg.det, n(4, 4)),
    "svd": (lambda x: torch.linalg.svdvals(x), n(4, 4)),
    "glu": (functional.glu, n(4, 8)),
    "affine_grid": (lambda x: functional.affine_grid(x, (2, 3, 4, 4)), n(2, 2, 3)),
    "grid_sample": (functional.grid_sample, n(2, 3, 4, 4), n(2, 4, 4, 2)),
    "kron": (torch.kron, n(2, 3), n(2, 2)),
}


@dataclass(frozen=True)
class Call:
    """One call: what makes the module, the dtype of its parameters, and dtypes of its inputs.

    autocast   runs the forward under torch.autocast to bfloat16
    """

    name: str
    make: Callable[[], Any]
    inputs: tuple[Input, ...]
    parameters: torch.dtype
    floats: tuple[torch.dtype, ...]
    integer: torch.dtype = torch.int64
    autocast: bool = False

    def build(self) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
        """The module, on the CPU, and its inputs."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.parameters)
        try:
            module = Step(self.make())
        finally:
            torch.set_default_dtype(before)
        made = (each.make(dtype, self.integer) for each, dtype in zip(self.inputs, self.floats))
        return module, tuple(made)


class Step(nn.Module):
    """The mean of all that the call returns. A parameter without effect on dtypes gives calls without weights something
    to train."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.call = call

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        scaled = [each * self.scale if each.is_floating_point() else each for each in inputs]
        returned = self.call(*scaled)
        leaves = returned if isinstance(returned, (tuple, list)) else (returned,)
        flat = [leaf for each in leaves for leaf in (each if isinstance(each, tuple) else (each,))]
        return sum(leaf.float().mean() for leaf in flat if leaf is not None and leaf.is_floating_point())


def calls() -> Iterator[Call]:
    """Every call in each of its dtypes."""
    for name, (make, *inputs) in MODULES.items():
        yield from _variants(name, make, tuple(inputs), _has_tensors(make()))
    for name, (function, *inputs) in FUNCTIONS.items():
        yield from _variants(name, lambda function=function: function, tuple(inputs), False)


def _has_tensors(module: Any) -> bool:
    return isinstance(module, nn.Module) and len([*module.parameters(), *module.buffers()]) > 0


def _variants(name: str, make: Any, inputs: tuple[Input, ...], has_tensors: bool) -> Iterator[Call]:
    def call(label: str, parameters: torch.dtype, floats: Any, **more: Any) -> Call:
        return Call(f"{name}: {label}", make, inputs, parameters, tuple(floats), **more)

    count = len(inputs)
    floating = [place for place, each in enumerate(inputs) if each.kind in ("normal", "unit")]
    wide, half = torch.float32, torch.bfloat16
    for dtype in FLOATS:
        yield call(_word(dtype), dtype, [dtype] * count)
    if has_tensors and floating:
        yield call("float32 in a bfloat16 module", half, [wide] * count)
        yield call("bfloat16 in a float32 module", wide, [half] * count)
        yield call("float16 in a float32 module", wide, [torch.float16] * count)
        yield call("autocast, bfloat16 input", wide, [half] * count, autocast=True)
    for place in floating if len(floating) > 1 else []:
        floats = [wide if place == other else half for other in range(count)]
        yield call(f"input {place} float32, others bfloat16", half, floats)
    if len(floating) > 1:
        floats = [wide if place == floating[0] else half for place in range(count)]
        yield call("autocast, two dtypes", wide, floats, autocast=True)
    if any(each.kind == "integer" for each in inputs):
        yield call("int32", half, [half] * count, integer=torch.int32)
    yield call("autocast", wide, [wide] * count, autocast=True)


def _word(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def outcome_of(call: Call, device: str, seen: OperatorCalls | None = None) -> dict[str, str]:
    """Whether forward and backward run, or what they raise."""
    torch.manual_seed(0)
    module, inputs = call.build()
    module, inputs = module.to(device), tuple(each.to(device) for each in inputs)
    stage = "forward"
    try:
        with torch.autocast(device, dtype=torch.bfloat16, enabled=call.autocast), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with seen or warnings.catch_warnings():
                loss = module(*inputs)
                stage = "backward"
                loss.backward()
        if device == "cuda":
            torch.cuda.synchronize()
    except Exception as error:
        return {"outcome": "raises", "stage": stage, "message": _first_line(error)}
    return {"outcome": "runs"}


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}"[:300]


class OperatorCalls(TorchDispatchMode):
    """Collects the calls of ATen's operators: at most `most` of each with their arguments, and the dtypes of all."""

    def __init__(self, most: int = 3) -> None:
        super().__init__()
        self.most = most
        self.found: dict[str, list[tuple[Any, Any, Any]]] = {}
        self.ran: dict[str, set[str]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, signature = func.name(), signature_of((args, kwargs))
        kept = self.found.setdefault(name, [])
        if len(kept) < self.most and name.startswith("aten::") and _several(args, kwargs):
            kept.append((func, *tree_map(_copied, (args, kwargs))))
        returned = func(*args, **kwargs)
        self.ran.setdefault(name, set()).add(signature)
        return returned


def _several(args: Any, kwargs: Any) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((args, kwargs)))


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf


def signature_of(arguments: Any) -> str:
    """Dtypes of the tensors among an operator's arguments, in order; `()` marks those without dimensions."""
    tensors = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    return " ".join(_word(each.dtype) + ("()" if each.dim() == 0 else "") for each in tensors)


def dtype_rules(kept: list[tuple[Any, Any, Any]]) -> dict[str, str]:
    """By signature of an operator whose calls are `kept`: "" where it runs, else what it raises."""
    rules: dict[str, str] = {}
    for func, args, kwargs in kept:
        for arguments in _in_other_dtypes((args, kwargs)):
            signature = signature_of(arguments)
            if signature not in rules:
                rules[signature] = _tried(func, arguments)
    return rules


def _tried(func: Any, arguments: Any) -> str:
    args, kwargs = tree_map(_copied, arguments)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            func(*args, **kwargs)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
    except Exception as error:
        if "CUDA error" in str(error):
            sys.exit(f"the GPU's context is lost in {func.name()}: {signature_of(arguments)}")
        return _first_line(error)
    return ""


def _in_other_dtypes(arguments: Any) -> Iterator[Any]:
    """The arguments with floats all in one dtype, or some in one and the rest in another; and with other integers."""
    leaves, spec = tree_flatten(arguments)
    floats = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    integers = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64]
    bools = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.bool]
    kinds = (*FLOATS, torch.float64)

    def cast(places: dict[int, torch.dtype]) -> Any:
        return tree_unflatten([leaf.to(places[at]) if at in places else leaf for at, leaf in enumerate(leaves)], spec)

    for dtype in kinds:
        uniform = dict.fromkeys(floats, dtype)
        yield cast(uniform)
        for count in range(1, len(integers) + 1):
            for some in itertools.combinations(integers, count):
                yield cast(uniform | dict.fromkeys(some, torch.int32))
        for at in bools:
            yield cast(uniform | {at: torch.uint8})
    most = len(floats) - 1 if len(floats) <= 5 else 1
    for one, other in itertools.permutations(kinds, 2):
        for count in range(1, most + 1):
            for some in itertools.combinations(floats, count):
                yield cast(dict.fromkeys(floats, other) | dict.fromkeys(some, one))


def _work(device: str, first: int, out: Path) -> int:
    """Calls from number `first` on, then the operators beneath them; each outcome is a line of `out`."""
    torch.set_num_threads(1)  # tiny tensors
    seen = OperatorCalls()
    with out.open("a", encoding="utf-8") as lines:
        for number, call in enumerate(calls()):
            if number < first:
                continue
            print(json.dumps({"begun": number}), file=lines, flush=True)
            outcome = outcome_of(call, device, seen)
            print(json.dumps({"call": call.name, **outcome}), file=lines, flush=True)
            if "CUDA error" in outcome.get("message", ""):
                return _BROKEN
        for name in sorted(name for name, kept in seen.found.items() if kept):
            if "attention_backward" in name:
                continue  # these kernels trust their saved statistics' dtype and lose the GPU's context
            rules = dict.fromkeys(seen.ran.get(name, ()), "") | dtype_rules(seen.found[name])
            print(json.dumps({"operator": name, "rules": rules}), file=lines, flush=True)
    return 0


def _sweep(device: str, out: Path) -> dict[str, Any]:
    """Runs workers, a new one behind each call that a GPU does not survive."""
    lines, first = Path(tempfile.mkdtemp()) / "lines", 0
    while True:
        ended = subprocess.run([sys.executable, __file__, "--device", device, "--from", str(first), "--out", str(lines)])
        read = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        if ended.returncode == 0:
            break
        if ended.returncode not in (_BROKEN, -signal.SIGABRT, -signal.SIGSEGV):
            sys.exit(ended.returncode)
        first = max(line["begun"] for line in read if "begun" in line) + 1
    versions = {"torch": torch.__version__, "device": torch.cuda.get_device_name(0) if device == "cuda" else "cpu"}
    outcomes = {line.pop("call"): line for line in read if "call" in line}
    rules = {line["operator"]: line["rules"] for line in read if line.get("rules")}
    return {"versions": versions, "calls": outcomes, "operators": rules}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--out", type=Path, required=True, help="the table, JSON")
    parser.add_argument("--from", dest="first", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("no CUDA GPU here: expected one", file=sys.stderr)
        return 3
    if arguments.first is not None:
        return _work(arguments.device, arguments.first, arguments.out)
    table = _sweep(arguments.device, arguments.out)
    arguments.out.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    raising = sum(outcome["outcome"] == "raises" for outcome in table["calls"].values())
    print(f"{len(table['calls'])} calls, {raising} raise; {len(table['operators'])} operators")
    return 0


if __name__ == "__main__":
    sys.exit(main())
