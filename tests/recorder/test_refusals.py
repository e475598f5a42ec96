"""What cannot run in a C++ process is refused in a sentence: which node, which module, what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import refused_modules as modules
import torch
from conftest import operators, record_module
from dcrecord.errors import RecorderError
from torch import nn

ROWS = (4, 8)
REFUSED: list[tuple[Callable[[], nn.Module], tuple[int, ...], str]] = [
    (
        modules.Item,
        ROWS,
        "graph break: Python code depends on the contents of a tensor; expected tensor operators (torch.where) in place "
        "of .item(), if and while on tensors, and module.eval() where a module drops layers with probability 0 "
        "(at refused_modules.py:{hidden.sum().item()} in forward)",
    ),
    (
        modules.Sleep,
        ROWS,
        "graph break: Dynamo does not know how to trace the builtin `time.sleep.`",
    ),
    (
        modules.Selection,
        ROWS,
        "dynamic shapes: the shape of a tensor depends on data; expected static shapes: pad or mask instead of selecting "
        "elements (at refused_modules.py:{hidden[hidden > 0]} in forward)",
    ),
    (
        modules.InputMutation,
        ROWS,
        "the forward changes its inputs or buffers in place (input x0): expected a module that leaves them alone",
    ),
    (
        modules.BufferMutation,
        ROWS,
        "the forward changes its inputs or buffers in place (count): expected a module that leaves them alone",
    ),
    (
        modules.Dropout,
        ROWS,
        "dropout draws random numbers in 1 call (modules drop; probabilities: 1 Dropout); expected --no-dropout, which sets "
        "all to 0",
    ),
    (modules.Noise, ROWS, "forward node rand (the root module): operator aten::rand draws random numbers"),
    (
        modules.Condition,
        ROWS,
        "2 nodes of this model cannot run in a C++ process:\n  forward node cond (the root module): higher-order operator "
        "cond exists in Python only; expected plain tensor operators in its place\n  backward node",
    ),
    (
        modules.FlexAttention,
        (2, 128, 16),
        "flex_attention is a higher-order operator, which exists in Python only; expected scaled_dot_product_attention "
        "(at refused_modules.py:{return flex_attention(} in forward)",
    ),
    (
        modules.Prims,
        ROWS,
        "forward node iota (the root module): operator prims::iota is not PyTorch's own, whose namespace is aten; expected "
        "aten operators in its place",
    ),
    (
        modules.UnderivablePrims,
        ROWS,
        "operator prims.convert_element_type.default has no derivative; expected operators of namespace aten "
        "(at refused_modules.py:{prims.convert_element_type} in forward)",
    ),
    (
        modules.CustomOperator,
        ROWS,
        "forward node double (the root module): operator refused_modules::double is not PyTorch's own",
    ),
    (
        modules.BatchNorm,
        (4, 8, 8),
        "batch_norm of float32 parameters calls an operator of cuDNN on a GPU, which cannot be recorded without one: expected "
        "--dtype bfloat16 or --autocast bfloat16",
    ),
    (lambda: modules.Recurrence(nn.LSTM), (2, 5, 8), "lstm calls an operator of cuDNN on a GPU"),
    (lambda: modules.Recurrence(nn.GRU), (2, 5, 8), "gru calls an operator of cuDNN on a GPU"),
    (lambda: modules.Recurrence(nn.RNN), (2, 5, 8), "rnn_tanh calls an operator of cuDNN on a GPU"),
    (
        modules.WrongShapes,
        ROWS,
        "the module fails on inputs of these shapes and dtypes: RuntimeError('a and b must have same reduction dim, but got [4, 8] X "
        "[4, 8].'); expected a module that runs (at refused_modules.py:{self.layer(rows) @ rows} in forward)",
    ),
    (
        modules.Heads,
        ROWS,
        "scaled_dot_product_attention does not take query, key and value of [1, 2, 4, 4], [1, 3, 4, 4], [1, 3, 4, 4] in groups; "
        "expected as many elements in each head",
    ),
    (modules.Raises, ROWS, "the module raises ValueError: 'one row only', 4; expected a module that runs (at ref"),
    (modules.NoLoss, ROWS, "the module does not return a scalar loss: expected a tensor, a tuple whose first element"),
    (modules.Synchronized, ROWS, "module norm: SyncBatchNorm communicates; expected BatchNorm (statistics of one rank)"),
    (
        modules.SparseTable,
        ROWS,
        "module table: Embedding(sparse=True) has sparse gradients, which are not recorded; expected sparse=False",
    ),
    (modules.SparseFunction, ROWS, "its result is a sparse tensor, which is not recorded; expected dense gradients"),
    (modules.Lazy, ROWS, "module first: LazyLinear.weight has no shape until a first call; expected a module with its sizes"),
    (modules.NoClasses, ROWS, "parameter head.weight [0, 8] has no elements; expected a module without it"),
    (lambda: modules.Cell(nn.GRUCell), ROWS, "gru_cell calls aten::_thnn_fused_gru_cell on a GPU, which cannot be recorded"),
    (lambda: modules.Cell(nn.LSTMCell), ROWS, "lstm_cell calls aten::_thnn_fused_lstm_cell on a GPU, which cannot be"),
    (nn.ReLU, ROWS, "the loss depends on no parameter that requires a gradient: expected something to train"),
]


def _with_lines(message: str) -> str:
    """Replaces `{code}` by the number of the line of refused_modules.py that holds this code."""
    with open(modules.__file__, encoding="utf-8") as source:
        lines = source.read().splitlines()

    def number(match: re.Match[str]) -> str:
        return str(next(index for index, line in enumerate(lines, 1) if match[1] in line))

    return re.sub(r"\{(.*?)\}", number, message)


@pytest.mark.parametrize(
    ("make", "shape", "message"), REFUSED, ids=[row[2][:40].replace("\n", " ") + str(i) for i, row in enumerate(REFUSED)]
)
def test_refusal_says_what_where_and_what_to_do(
    make: Callable[[], nn.Module], shape: tuple[int, ...], message: str, capfd: Any
) -> None:
    with pytest.raises(RecorderError) as refused:
        record_module(make, torch.zeros(shape))
    assert _with_lines(message) in str(refused.value)
    assert capfd.readouterr().err == ""


def test_dropout_of_probability_zero_is_recorded() -> None:
    def make() -> nn.Module:
        module = modules.Dropout()
        module.drop.p = 0.0
        return module

    assert record_module(make, torch.zeros(ROWS))["tokens"] == 4


def test_operator_forbidden_under_autocast_is_refused() -> None:
    with pytest.raises(RecorderError, match="binary_cross_entropy is unsafe to autocast"):
        record_module(modules.ForbiddenUnderAutocast, torch.zeros(ROWS), autocast="bfloat16")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_derivative_without_half_precision_names_module_and_line(dtype: str) -> None:
    rows = torch.zeros(ROWS, dtype=getattr(torch, dtype))
    with pytest.raises(RecorderError) as refused:
        record_module(modules.Determinant, rows, dtype=dtype)
    assert str(refused.value) == _with_lines(
        "the derivative of an operator takes float32 and float64 only; expected --dtype float32, or a cast (.float()) (module "
        "volume, at refused_modules.py:{return torch.det(rows} in forward)"
    )
    assert "aten::_linalg_det" in operators(record_module(modules.Determinant, torch.zeros(ROWS)), "forward")


def test_all_refused_nodes_are_listed_with_their_modules() -> None:
    class Noisy(modules.Noise):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = modules.Noise(), modules.Noise()

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.first(rows) + self.second(rows)

    with pytest.raises(RecorderError) as refused:
        record_module(Noisy, torch.zeros(ROWS))
    assert str(refused.value).startswith("2 nodes of this model cannot run in a C++ process:")
    assert re.findall(r"\(module (\S+)\)", str(refused.value)) == ["first", "second"]


def test_unsafe_splits_are_views() -> None:
    document = record_module(modules.Halves, torch.zeros(ROWS))
    assert {"aten::unsafe_split.Tensor", "aten::unsafe_split_with_sizes"} <= set(operators(document, "forward"))


def test_cell_without_a_fused_operator_is_recorded() -> None:
    assert "aten::tanh" in operators(record_module(lambda: modules.Cell(nn.RNNCell), torch.zeros(ROWS)), "forward")
