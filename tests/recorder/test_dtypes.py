"""What eager PyTorch raises for on a GPU because of dtypes is refused in a sentence that names operator, module and line."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from conftest import operators, record_module
from dcrecord import dtype_rules
from dcrecord.errors import RecorderError
from torch import nn
from torch.nn import functional

SWEEP = Path(__file__).resolve().parent / "sweep"
sys.path.insert(0, str(SWEEP))

from eager_calls import calls  # noqa: E402
from sweep import disagrees, outcome_of  # noqa: E402

OUTCOMES: dict[str, list[str]] = json.loads((SWEEP / "outcomes.json").read_text(encoding="utf-8"))["calls"]
SAMPLE = random.Random(39).sample(sorted(OUTCOMES), 30)

ROWS = torch.zeros(4, 16, 64)


class Mixed(nn.Module):
    """One operation on bfloat16 and float32 operands in a module of its own."""

    def __init__(self, operation: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)
        self.inner = Inner(operation)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.inner(self.layer(rows)).float().mean()


class Inner(nn.Module):
    def __init__(self, operation: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.operation = operation
        self.norm = nn.LayerNorm(64, dtype=torch.float32)
        self.groups = nn.GroupNorm(4, 16, dtype=torch.float32)
        self.batch = nn.BatchNorm1d(16, dtype=torch.float32)
        self.root_mean = nn.RMSNorm(64, dtype=torch.float32)
        self.words = nn.Linear(64, 64, dtype=torch.float32)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.operation(self, rows)  # here


def _places(rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros(rows.shape[0] * rows.shape[1], dtype=torch.int32)


REFUSED: list[tuple[str, Callable[..., torch.Tensor]]] = [
    ("aten::addmm", lambda inner, x: inner.words(x)),
    ("aten::bmm", lambda _, x: torch.bmm(x, x.float().transpose(1, 2))),
    ("aten::mm", lambda _, x: x.flatten(0, 1) @ torch.ones(64, 8, dtype=torch.float64)),
    ("aten::native_layer_norm", lambda inner, x: inner.norm(x)),
    ("aten::native_group_norm", lambda inner, x: inner.groups(x)),
    ("scaled_dot_product_attention", lambda _, x: functional.scaled_dot_product_attention(x[:, None], x[:, None].float(), x[:, None])),
    (
        "scaled_dot_product_attention",
        lambda _, x: functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], torch.zeros(16, 16).float()),
    ),
    ("aten::index_add", lambda _, x: torch.zeros(4, 16, 64).float().index_add(0, torch.arange(4), x)),
    ("scatter", lambda _, x: x.scatter(1, torch.zeros(4, 16, 64, dtype=torch.int64), x.float())),
    ("aten::nll_loss_forward", lambda _, x: functional.cross_entropy(x.flatten(0, 1).float(), _places(x))),
    ("multi_margin_loss", lambda _, x: functional.multi_margin_loss(x.flatten(0, 1), _places(x))),
    ("dot : expected both vectors to have same dtype", lambda _, x: torch.dot(x[0, 0], x[0, 0].float())),
]


@pytest.mark.parametrize(("operator", "operation"), REFUSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(REFUSED)])
def test_operands_of_two_dtypes_are_refused(operator: str, operation: Callable[..., torch.Tensor]) -> None:
    with pytest.raises(RecorderError) as refused:
        record_module(lambda: Mixed(operation), ROWS.bfloat16(), dtype="bfloat16", attention="auto")
    message = str(refused.value)
    assert operator in message and "\n" not in message
    assert "module inner" in message and "test_dtypes.py:" in message


RECORDED: list[tuple[str, Callable[..., torch.Tensor]]] = [
    ("aten::mean.dim", lambda inner, x: inner.root_mean(x)),  # written out: the fused kernel takes one dtype
    ("aten::_native_batch_norm_legit", lambda inner, x: inner.batch(x)),
    ("aten::mul.Tensor", lambda _, x: x * x.float()),
    ("aten::cat", lambda _, x: torch.cat((x, x.float()))),
    ("aten::where.self", lambda _, x: torch.where(x > 0, x, x.float())),
]


@pytest.mark.parametrize(("operator", "operation"), RECORDED, ids=[row[0] for row in RECORDED])
def test_operands_that_a_gpu_takes_together_are_recorded(operator: str, operation: Callable[..., torch.Tensor]) -> None:
    document = record_module(lambda: Mixed(operation), ROWS.bfloat16(), dtype="bfloat16")
    assert operator in operators(document, "forward")


class Bags(nn.Module):
    """Sums, means or maxima of the rows of a table that belong to a bag of words."""

    def __init__(self, mode: str, **settings: object) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(10, 8, mode=mode, **settings)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.bag(words).float().mean()


BAGS = [
    ("sum", "float32", {}),
    ("sum", "float16", {"padding_idx": 0}),
    ("sum", "bfloat16", {"include_last_offset": False}),
    ("mean", "float32", {"scale_grad_by_freq": True}),
    ("mean", "bfloat16", {}),
    ("max", "float32", {}),
    ("max", "float16", {}),
]


@pytest.mark.parametrize(("mode", "dtype", "settings"), BAGS, ids=[f"{row[0]}-{row[1]}" for row in BAGS])
@pytest.mark.parametrize("whole", [torch.int64, torch.int32], ids=["int64", "int32"])
def test_bags_of_words_are_those_of_a_gpu(mode: str, dtype: str, settings: dict[str, object], whole: torch.dtype) -> None:
    """CUDA's kernel tells the bag of each word in every mode, and the index of a maximum in one."""
    document = record_module(lambda: Bags(mode, **settings), torch.zeros(3, 4, dtype=whole), dtype=dtype)
    op = next(op for op in document["graphs"][0]["ops"] if document["schemas"][op["schema"]].startswith("aten::_embedding_bag("))
    shapes = [document["values"][each]["shape"] for each in op["outputs"]]
    assert shapes == [[3, 8], [12], [3], [3, 8] if mode == "max" else [0]]


def test_a_maximum_of_bags_has_no_derivative_in_bfloat16() -> None:
    for whole in (torch.int64, torch.int32):
        with pytest.raises(RecorderError, match=r"aten::_embedding_bag_backward does not take bfloat16, .*; expected another --dtype"):
            record_module(lambda: Bags("max"), torch.zeros(3, 4, dtype=whole), dtype="bfloat16")


def test_autocast_makes_operands_one_dtype() -> None:
    document = record_module(lambda: Mixed(lambda inner, x: inner.words(x)), ROWS, autocast="bfloat16")
    assert operators(document, "forward").count("aten::addmm") == 2


def test_operator_that_no_gpu_was_asked_about_is_asked_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtype_rules, "_measured", dict)
    with pytest.raises(RecorderError, match="aten::addmm does not take float32, bfloat16, float32 on a GPU; expected one dtype"):
        record_module(lambda: Mixed(lambda inner, x: inner.words(x)), ROWS.bfloat16(), dtype="bfloat16")
    assert record_module(lambda: Mixed(lambda _, x: x * x.float()), ROWS.bfloat16(), dtype="bfloat16")["tokens"] == 4


def test_what_raises_on_a_gpu_is_not_recorded() -> None:
    assert len(OUTCOMES) >= 300
    assert [name for name, (on_gpu, recorder) in OUTCOMES.items() if disagrees(on_gpu, recorder)] == []
    assert [name for name, (_, recorder) in OUTCOMES.items() if "\n" in recorder] == []


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_the_sweep_ends_as_committed() -> None:
    chosen = [call for call in calls() if call.name in SAMPLE]
    assert {call.name: outcome_of(call) for call in chosen} == {name: OUTCOMES[name][1] for name in SAMPLE}
