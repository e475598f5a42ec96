"""Workloads that are recorded twice, on a GPU and without one, and must come out the same.

Each is small and holds operators for which the CPU takes another way than CUDA. They are recorded on a
GPU by record_on_gpu.py and here by test_gpu_summaries.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from dcrecord.architectures import Architecture, LinearStack
from dcrecord.building import Builder
from dcrecord.model_workloads import model_workload
from dcrecord.options import Options
from dcrecord.workload import Fill, Workload, call_by_position
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def _llama_like(family: str, model: str, **more: Any) -> Architecture:
    config = {
        "model_type": family,
        "architectures": [model],
        "vocab_size": 128,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 64,
        "rope_parameters": _ROPE,
        "tie_word_embeddings": False,
        **more,
    }
    return Architecture(f"tiny-{family}", 0, config, batch=2, sequence=32)


_GPT2 = Architecture(
    "tiny-gpt2",
    0,
    {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": 128,
        "n_embd": 64,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "bos_token_id": None,
        "eos_token_id": None,
        "tie_word_embeddings": True,
    },
    batch=2,
    sequence=32,
)
_LLAMA = _llama_like("llama", "LlamaForCausalLM")
_QWEN3 = _llama_like("qwen3", "Qwen3ForCausalLM", tie_word_embeddings=True)
_LLAMA_ODD_HEADS = _llama_like("llama", "LlamaForCausalLM", head_dim=12)


class Norms(nn.Module):
    """The operators whose composite form looks at the device: rms_norm, layer_norm and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(64, 192)
        self.rms = nn.RMSNorm(64)
        self.layer = nn.LayerNorm(64)
        self.out = nn.Linear(64, 64)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = self.query_key_value(self.rms(rows)).view(2, 32, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = self.layer(rows + mixed.transpose(1, 2).reshape(2, 32, 64))
        return functional.rms_norm(self.out(hidden), (64,)).float().pow(2).mean()


class MaskedAttention(nn.Module):
    """Attention with an explicit boolean mask, whose last dimension is no multiple of 8."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(64, 64)
        self.register_buffer("mask", torch.tril(torch.ones(30, 30, dtype=torch.bool)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        heads = self.proj(rows).view(2, 30, 4, 16).transpose(1, 2)
        return functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=self.mask).float().mean()


class AutocastZoo(nn.Module):
    """One operator or more of each rule of CUDA's autocast, and of those that only the CPU has a rule for."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 32)
        self.second = nn.Linear(32, 32, bias=False)
        self.slope = nn.PReLU()
        self.norm = nn.LayerNorm(32)
        self.group = nn.GroupNorm(4, 32)
        self.pair = nn.Bilinear(32, 32, 8)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.slope(self.first(rows))
        twice = self.second(hidden) + self.second(rows)
        normed = self.group(self.norm(twice)) + torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1)
        shares = torch.softmax(twice, -1) + torch.log_softmax(twice, -1) + twice.exp().cumsum(-1)
        joined = torch.cat([twice, normed], dim=-1).sum(-1) + torch.stack([hidden, hidden]).sum(0).mean(-1)
        table = torch.einsum("ri,rj->ij", hidden, twice) + torch.addcmul(twice.t() @ twice, table_of(hidden), table_of(twice))
        lengths = torch.linalg.vector_norm(hidden, dim=-1) + hidden.norm(dim=-1) + torch.trace(table)
        error = functional.mse_loss(normed, twice) + functional.smooth_l1_loss(shares, twice)
        return error + joined.mean() + lengths.mean() + self.pair(hidden, twice).mean()


def table_of(rows: torch.Tensor) -> torch.Tensor:
    """[32, 32] of the first rows."""
    return rows[:32]


class Convolutions(nn.Module):
    """Images: convolution, group norm, pooling, interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.GroupNorm(4, 16)
        self.second = nn.Conv2d(16, 8, 3, stride=2, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = functional.gelu(self.norm(self.first(images)))
        hidden = functional.interpolate(self.second(functional.avg_pool2d(hidden, 2)), scale_factor=2)
        return functional.silu(hidden).float().mean()


class BatchNorms(nn.Module):
    """Images and rows with batch norms, whose statistics and counters are written in place; one without statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.again = nn.BatchNorm2d(16, track_running_stats=False)
        self.last = nn.Linear(16, 24)
        self.rows = nn.BatchNorm1d(24)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = functional.max_pool2d(functional.relu(self.norm(self.first(images))), 3, stride=2, padding=1)
        hidden = functional.relu6(self.again(self.second(hidden))) + hidden
        return self.rows(self.last(functional.adaptive_avg_pool2d(hidden, 1).flatten(1))).float().square().mean()


class Choices(nn.Module):
    """Indexing and selection: gather, index, scatter, where, topk, a constant of the code, float16 softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 32)
        self.proj = nn.Linear(32, 16)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.proj(self.table(ids)) * torch.tensor(0.5)
        weights = torch.softmax(hidden, dim=-1, dtype=torch.float32) + torch.log_softmax(hidden, -1, dtype=torch.float32)
        top, where = weights.topk(3, dim=-1)
        spread = torch.zeros_like(weights).scatter_add(-1, where, top)
        picked = hidden[:, ids[0] % 7].gather(-1, where[:, :1].expand(-1, 4, -1)[:, :, :3])
        return torch.where(spread > 0, spread, weights.clamp(min=-3)).mean() + picked.float().sum() + spread.std()


class Losses(nn.Module):
    """Loss functions, whose results differ in how much of their storage they keep."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(64, 24)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        scores = self.proj(rows).float()
        goal = torch.ones_like(scores)
        classes = torch.arange(scores.shape[0], device=scores.device) % 24
        total = torch.zeros_like(scores[0, 0])
        for reduction in ("mean", "sum", "none"):
            losses = [
                loss(scores, goal, reduction=reduction)
                for loss in (
                    functional.mse_loss,
                    functional.smooth_l1_loss,
                    functional.huber_loss,
                    functional.l1_loss,
                    functional.binary_cross_entropy_with_logits,
                    functional.kl_div,
                    functional.soft_margin_loss,
                )
            ]
            losses.append(functional.cross_entropy(scores, classes, reduction=reduction, label_smoothing=0.1))
            losses.append(functional.multi_margin_loss(scores, classes, reduction=reduction))
            total = total + sum(loss.mean() for loss in losses)
        return total


class OperatorZoo(nn.Module):
    """Operators whose outputs have strides of their own: sorting, folding, padding, rolling, convolving, reducing."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(8, 12, 3, padding=1)
        self.back = nn.ConvTranspose1d(12, 8, 2, stride=2)
        self.bag = nn.Parameter(torch.randn(8, 16))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        hidden = functional.max_pool1d(functional.leaky_relu(self.first(series)), 2)
        hidden = self.back(hidden) + series.flip(-1).roll(3, -1)
        hidden = functional.pad(hidden, (1, 2), mode="replicate")[..., 1:-2] + functional.pad(series, (3, 0))[..., :-3]
        order = hidden.argsort(-1)
        hidden = torch.take_along_dim(hidden, order, -1) + hidden.sort(dim=1, descending=True).values
        windows = hidden.unfold(-1, 4, 2).amax(-1) + hidden[..., ::2].contiguous()[..., :15]
        mixed = torch.einsum("bci,cj->bij", windows, self.bag).tril().masked_fill(windows[:, :1].mT > 3, 0.0)
        deviation, mean = torch.var_mean(mixed, dim=(1, 2), keepdim=True)
        normal = ((mixed - mean) * (deviation + 1).rsqrt()).transpose(0, 2)
        folded = normal.reshape(16, -1).logsumexp(0) + torch.stack([normal, normal.neg()]).abs().amin((0, 1)).flatten()
        filled = folded.index_put((torch.arange(5, device=folded.device),), folded[:5] * 2).cumsum(0)
        joined = torch.cat([filled, folded.clamp(-1, 1)]).view(2, 30).prod(0)
        return joined.mean() + functional.elu(normal).std() + functional.normalize(hidden, dim=-1).sigmoid().norm()


class CheckpointedBlocks(nn.Module):
    """torch.utils.checkpoint around each block of a module of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64)) for _ in range(2)
        )

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            rows = rows + checkpoint(block, rows, use_reentrant=False)
        return rows.float().pow(2).mean()


@dataclass(frozen=True)
class Case:
    """A workload to build, and the options to record it with."""

    name: str
    build: Callable[[Options, Builder], Workload]
    options: Options


def _options(attention: str, **more: Any) -> Options:
    return replace(Options(batch=None, sequence=None, dtype="bfloat16", attention=attention), **more)


def _of_architecture(architecture: Architecture | LinearStack) -> Callable[[Options, Builder], Workload]:
    return lambda options, builder: model_workload(architecture, options, builder)


def _of_module(make: Callable[[], nn.Module], shape: tuple[int, ...], vocabulary: int | None = None) -> Any:
    def build(options: Options, builder: Builder) -> Workload:
        body, unknown = builder(make, options.torch_dtype)
        dtype = options.torch_dtype if vocabulary is None else torch.int64
        example = torch.zeros(shape, dtype=dtype)
        return Workload("module", body, call_by_position, {"x": example}, {"x": Fill(vocabulary)}, shape[0], unknown)

    return build


def _transformer_layer() -> nn.Module:
    return nn.TransformerEncoderLayer(64, 4, dim_feedforward=96, dropout=0.0, batch_first=True, norm_first=True)


def cases() -> list[Case]:
    """All cases, by name."""
    rows = (2, 32, 64)
    models = (("llama", _LLAMA), ("qwen3", _QWEN3), ("gpt2", _GPT2))
    kernels = ("flash", "efficient", "math", "cudnn")
    found = [Case(f"{name}-{kernel}", _of_architecture(model), _options(kernel)) for name, model in models for kernel in kernels]
    autocast = {"dtype": "float32", "autocast": "bfloat16"}
    half = {"dtype": "float32", "autocast": "float16"}
    found += [
        Case("llama-odd-heads-flash", _of_architecture(_LLAMA_ODD_HEADS), _options("flash")),
        Case("llama-float32-math", _of_architecture(_LLAMA), _options("math", dtype="float32")),
        Case("llama-default-partition", _of_architecture(_LLAMA), _options("flash", partitioner="default")),
        Case("llama-checkpointed", _of_architecture(_LLAMA), _options("flash", activation_checkpointing=True)),
        Case("llama-frozen-embedding", _of_architecture(_LLAMA), _options("flash", frozen=("model.embed_tokens.*",), hold=())),
        Case("llama-autocast", _of_architecture(_LLAMA), _options("flash", **autocast)),
        Case(
            "llama-autocast-checkpointed", _of_architecture(_LLAMA), _options("flash", activation_checkpointing=True, **autocast)
        ),
        Case("gpt2-autocast-float16", _of_architecture(_GPT2), _options("flash", **half)),
        Case("mlp", _of_architecture(LinearStack(3, 64, batch=16)), _options("flash")),
        Case("norms-flash", _of_module(Norms, rows), _options("flash")),
        Case("norms-float16", _of_module(Norms, rows), _options("flash", dtype="float16")),
        Case("norms-autocast", _of_module(Norms, rows), _options("flash", **autocast)),
        Case("masked-efficient", _of_module(MaskedAttention, (2, 30, 64)), _options("efficient")),
        Case("masked-math", _of_module(MaskedAttention, (2, 30, 64)), _options("math")),
        Case("masked-cudnn", _of_module(MaskedAttention, (2, 30, 64)), _options("cudnn")),
        Case("autocast-zoo", _of_module(AutocastZoo, (48, 32)), _options("math", **autocast)),
        Case("autocast-zoo-float16", _of_module(AutocastZoo, (48, 32)), _options("math", **half)),
        Case("convolutions", _of_module(Convolutions, (2, 3, 16, 16)), _options("math")),
        Case("convolutions-autocast", _of_module(Convolutions, (2, 3, 16, 16)), _options("math", **autocast)),
        Case("batch-norms", _of_module(BatchNorms, (8, 3, 16, 16)), _options("math")),
        Case("batch-norms-autocast", _of_module(BatchNorms, (8, 3, 16, 16)), _options("math", **autocast)),
        Case("choices", _of_module(Choices, (4, 8), 40), _options("math")),
        Case("choices-float16", _of_module(Choices, (4, 8), 40), _options("math", dtype="float16")),
        Case("transformer-layer", _of_module(_transformer_layer, rows), _options("efficient")),
        Case("losses", _of_module(Losses, (12, 64)), _options("math")),
        Case("operator-zoo", _of_module(OperatorZoo, (2, 8, 32)), _options("math", dtype="float32")),
        Case("checkpointed-blocks", _of_module(CheckpointedBlocks, (8, 64)), _options("math")),
    ]
    return found
