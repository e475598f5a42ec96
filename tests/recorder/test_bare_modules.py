"""What is recorded of a module computes what the module computes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
import torch
from bare_modules import BARE_MODULES, Bare, Images, Positions, TiedWords, layers
from conftest import operators, record_module
from dcrecord.interpret import Interpreter
from dcrecord.outputs import split_loss
from torch import nn
from torch.nn import functional

# The graph runs the kernels that the module runs, up to the order of sums in a few (linear becomes t and addmm). Sums
# of at most 400 float32 terms, each rounded by 2^-24, differ by less than 400 * 2^-24 = 2.4e-5 of their size.
TOLERANCE = 2.4e-5


def run_document(document: dict[str, Any], module: nn.Module, inputs: list[torch.Tensor]) -> tuple[Any, dict[str, Any]]:
    """Loss, and gradients by name, of the recorded graphs on the module's weights."""
    interpreter = Interpreter.of(document, torch.device("cpu"))
    parameters = dict(module.named_parameters())
    given = {entry["value"]: parameters[entry["name"]].detach() for entry in document["params"]}
    given |= interpreter.buffers()
    given |= {entry["value"]: tensor for entry, tensor in zip(document["inputs"], inputs)}
    forward, backward = document["graphs"]
    given |= interpreter.run(forward, given)
    loss = given[next(entry["value"] for entry in forward["outputs"] if entry["kind"] == "loss")]
    tangent = next(entry["value"] for entry in backward["inputs"] if entry["kind"] == "tangent")
    results = interpreter.run(backward, {**given, tangent: torch.ones_like(loss)})
    names = [entry["name"] for entry in document["params"]]
    return loss, {names[entry["param"]]: results[entry["value"]] for entry in backward["outputs"]}


@pytest.mark.parametrize("partitioner", ["mincut", "default"])
@pytest.mark.parametrize("bare", BARE_MODULES.values(), ids=list(BARE_MODULES))
def test_graph_computes_loss_and_gradients_of_the_module(bare: Bare, partitioner: str) -> None:
    torch.manual_seed(0)
    module, inputs = bare.make(), bare.inputs()
    document = record_module(bare.make, *inputs, partitioner=partitioner)
    loss, gradients = run_document(document, module, inputs)
    expected, _ = split_loss(module(*inputs))
    expected.backward()
    torch.testing.assert_close(loss, expected.detach(), rtol=TOLERANCE, atol=0)
    trained = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    assert sorted(gradients) == sorted(trained)
    for name, gradient in trained.items():
        assert (gradients[name] - gradient).norm() <= TOLERANCE * gradient.norm(), name


class Transposed(nn.Module):
    """Predictions that lie otherwise than their goals; their gradient is contiguous."""

    def __init__(self, loss: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)
        self.loss = loss

    def forward(self, rows: torch.Tensor, goals: torch.Tensor) -> torch.Tensor:
        return self.loss(self.layer(rows).transpose(1, 2), goals)


@pytest.mark.parametrize("loss", [functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss])
def test_gradient_of_a_loss_lies_as_its_kernel_makes_it(loss: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(0)
    module, inputs = Transposed(loss), [torch.randn(2, 4, 6), torch.randn(2, 5, 4)]
    document = record_module(lambda: Transposed(loss), *inputs)
    _, gradients = run_document(document, module, inputs)
    module(*inputs).backward()
    torch.testing.assert_close(gradients["layer.weight"], module.layer.weight.grad)


def test_tied_weight_is_one_parameter_with_one_gradient() -> None:
    document = record_module(TiedWords, torch.zeros(3, 4, dtype=torch.int64))
    names = [(entry["name"], entry.get("tied", [])) for entry in document["params"]]
    assert names == [("table.weight", ["out.weight"]), ("unused.weight", []), ("unused.bias", [])]
    assert [output["param"] for output in document["graphs"][1]["outputs"]] == [0]


def test_tied_bias_goes_by_the_name_under_which_it_is_used() -> None:
    """As in BERT's head: the module has the bias first, and its layer, which uses it, second."""

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(3))
            self.decoder = nn.Linear(5, 3)
            self.decoder.bias = self.bias

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.decoder(rows).float().mean()

    document = record_module(Head, torch.zeros(2, 5))
    names = [(entry["name"], entry.get("tied", [])) for entry in document["params"]]
    assert names == [("bias", ["decoder.bias"]), ("decoder.weight", [])]
    used = {entry["value"] for entry in document["graphs"][0]["inputs"] if entry["kind"] == "param"}
    assert used == {entry["value"] for entry in document["params"]}
    assert [output["param"] for output in document["graphs"][1]["outputs"]] == [0, 1]


def test_unused_parameter_is_in_the_table_only() -> None:
    document = record_module(TiedWords, torch.zeros(3, 4, dtype=torch.int64))
    used = {entry["value"] for graph in document["graphs"] for entry in graph["inputs"] if entry["kind"] == "param"}
    assert used == {document["params"][0]["value"]}


def test_buffers_hold_their_true_contents() -> None:
    document = record_module(Positions, torch.zeros(5, 4))
    interpreter = Interpreter.of(document, torch.device("cpu"))
    tensors = interpreter.buffers()
    contents = {entry["name"]: tensors[entry["value"]] for entry in document["buffers"]}
    constant = next(name for name in contents if name not in ("angles", "turned", "plain"))
    assert contents["plain"].tolist() == [0.25, 0.5, 0.75]
    assert torch.equal(contents["angles"], torch.arange(12.0).view(4, 3).cos())
    assert contents["turned"].tolist() == [[0, 2, 4], [1, 3, 5]] and contents["turned"].stride() == (1, 2)
    assert contents[constant].tolist() == [0.5, 1.0, 2.0]


def test_loss_comes_first_and_other_outputs_are_held_by_name() -> None:
    document = record_module(Images, torch.zeros(2, 3, 12, 12))
    kinds = [(output["kind"], output.get("name"), output.get("held")) for output in document["graphs"][0]["outputs"][:2]]
    assert kinds == [("loss", None, None), ("output", "scores", True)]


def test_lone_tensor_gets_its_mean_as_loss() -> None:
    document = record_module(layers, torch.zeros(6, 7))
    assert operators(document, "forward")[-3:] == ["aten::mm", "aten::mean", "aten::detach"]
    assert document["graphs"][0]["outputs"][1]["name"] == "output"


def test_ops_name_the_module_that_made_them() -> None:
    document = record_module(layers, torch.zeros(6, 7))
    forward = document["graphs"][0]
    modules = [document["modules"][op["module"]] for op in forward["ops"]]
    names = operators(document, "forward")
    assert modules[names.index("aten::tanh")] == "1"
    assert modules[names.index("aten::mm")] == "2"


class Masked(nn.Module):
    """Adds the causal mask of 2,048 words, of which the whole is a buffer, as GPT-Neo's."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mask", torch.tril(torch.ones(2048, 2048, dtype=torch.bool)), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).masked_fill(self.mask[3, :4], 0.0)


def test_masks_of_many_words_keep_their_contents() -> None:
    document = record_module(Masked, torch.zeros(2, 4))
    (mask,) = document["buffers"]
    contents = torch.frombuffer(bytearray(base64.b64decode(mask["data"])), dtype=torch.bool).view(2048, 2048)
    assert contents.equal(torch.ones(2048, 2048, dtype=torch.bool).tril())


def _large_buffer() -> nn.Module:
    module = nn.Linear(4, 4)
    module.register_buffer("large", torch.zeros(2**25))
    return module


def _empty_buffer() -> nn.Module:
    module = nn.Linear(4, 4)
    module.register_buffer("empty", torch.empty(2**21))
    return module


def _depends_on_weights() -> nn.Module:
    module = nn.Linear(2048, 2048)
    module.register_buffer("copied", torch.zeros(2048))
    with torch.no_grad():
        module.copied.copy_(module.weight[0])
    return module


@pytest.mark.parametrize(
    ("make", "name"), [(_large_buffer, "large"), (_empty_buffer, "empty"), (_depends_on_weights, "copied")]
)
def test_buffer_of_unknown_contents_is_refused(make: Callable[[], nn.Module], name: str) -> None:
    with pytest.raises(Exception, match=f"the contents of buffer '{name}' .* are not known without the weights"):
        record_module(make, torch.zeros(2, 4))
