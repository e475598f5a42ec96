"""Stand-ins: what a compiled form computes with them is what the module computes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from compiled_interpreter import CompiledInterpreter
from conftest import PLAIN, ROOT
from dcrecord.building import build_without_weights
from dcrecord.command_line import main
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document
from dcrecord.options import Reporter
from dcrecord.outputs import split_loss
from dcrecord.recording import record_forms
from dcrecord.reference_training import ReferenceTraining, Settings
from dcrecord.workload import Fill, Workload, call_by_position
from graph_checker import faults_of
from torch import nn
from torch.nn import functional

TINY = ROOT / "traces" / "tiny-llama"
CPU = torch.device("cpu")


@pytest.mark.parametrize("form", COMPILED_FILES)
def test_tiny_llama_trains_as_its_aten_graph(form: str) -> None:
    """Losses of float32 equal to a few roundings of 2^-24; sums of a gradient's terms in other orders."""
    settings = Settings(steps=3, accumulation=2, ranks=2)
    compiled = read_document(TINY / COMPILED_FILES[form])
    whole = ReferenceTraining(read_document(TINY / GRAPH_FILE), settings, CPU)
    fused = ReferenceTraining(compiled, settings, CPU)
    fused.interpreter = CompiledInterpreter.of(compiled, CPU)
    for step in range(settings.steps):
        expected, actual = whole.run(step), fused.run(step)
        assert actual.loss == pytest.approx(expected.loss, rel=8 * 2**-24)
        assert actual.gradients.keys() == expected.gradients.keys()
        for param, gradient in expected.gradients.items():
            assert (actual.gradients[param] - gradient).norm() <= 1e-5 * gradient.norm()


class _Block(nn.Module):
    """Norm with mean and variance, erf, a softmax with a mask, indices that are data, a shift that pads, a window of parts."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 12, padding_idx=0)
        self.norm = nn.LayerNorm(12)
        self.up = nn.Linear(12, 18)
        self.down = nn.Linear(18, 12)
        self.head = nn.Linear(12, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.table(words)
        x = x + self.down(functional.gelu(self.up(self.norm(x))))
        scores = (x @ x.transpose(-1, -2)).masked_fill(torch.ones(7, 7).triu(1).bool(), float("-inf"))
        x = torch.cat([scores.softmax(-1) @ x, x.roll(1, 1)[:, :2]], 1)
        labels = functional.pad(words, (0, 3), value=-100)[:, 1:]
        return functional.cross_entropy(self.head(x).transpose(1, 2), labels)


class _Statistics(nn.Module):
    """A batch norm, whose statistics are changed where they are, and pooling, whose windows know where they took from."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(functional.silu(self.norm(self.conv(x))), 2).square().mean()


class _Running(nn.Module):
    """A sum that runs along a row, which Inductor scans."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).cumsum(-1).square().mean()


def _record(make: Callable[[], nn.Module], example: torch.Tensor, dtype: str) -> tuple[dict[str, Any], list[str]]:
    """Compiled forms, and what the recorder says."""
    options = replace(PLAIN, dtype=dtype, backend="inductor", stand_ins=True)
    body, unknown = build_without_weights(make, options.torch_dtype)
    fills = {"x": Fill() if example.is_floating_point() else Fill(10)}
    workload = Workload("module", body, call_by_position, {"x": example}, fills, example.shape[0], unknown)
    head = {"format": "dc-graph/1", "name": "module", "recorder": {}}
    report = Reporter()
    forms = {name: {**head, **form} for name, form in record_forms(workload, options, report)[1].items()}
    assert {name: faults_of(form) for name, form in forms.items()} == {"zero3": [], "zero12": []}
    return forms, report.lines


def _run(document: dict[str, Any], module: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor], Any]:
    """Loss, gradients by name, and the module's buffers afterwards."""
    interpreter = CompiledInterpreter.of(document, CPU)
    parameters = dict(module.named_parameters())
    given = {entry["value"]: parameters[entry["name"]].detach() for entry in document["params"]}
    given |= interpreter.buffers() | {document["inputs"][0]["value"]: x}
    forward, backward = document["graphs"]
    given |= interpreter.run(forward, given)
    returned = next(entry["value"] for entry in forward["outputs"] if entry["kind"] == "loss")
    loss = given[returned].clone()
    tangents = {
        entry["value"]: torch.full_like(given[entry["of"]], 1.0 if entry["of"] == returned else 0.0)
        for entry in backward["inputs"]
        if entry["kind"] == "tangent"
    }
    results = interpreter.run(backward, {**given, **tangents})
    names = [entry["name"] for entry in document["params"]]
    gradients = {names[entry["param"]]: results[entry["value"]] for entry in backward["outputs"]}
    return loss, gradients, {entry["name"]: given[entry["value"]] for entry in document["buffers"]}


_SEEDED = torch.Generator().manual_seed(0)
_WORDS = torch.randint(1, 10, (3, 7), generator=_SEEDED)
_IMAGES = torch.randn(2, 3, 8, 8, generator=_SEEDED, dtype=torch.float32).bfloat16()

# Of bfloat16 a kernel rounds what it stores, an operator each of its results: 2^-9 each, some ten in a row.
CASES = [
    (_Block, _WORDS, "float32", 1e-5),
    (_Block, _WORDS, "bfloat16", 10 * 2**-8),
    (_Statistics, _IMAGES, "bfloat16", 10 * 2**-8),
]


@pytest.mark.parametrize(("make", "x", "dtype", "error"), CASES)
def test_modules_compute_the_same(make: Callable[[], nn.Module], x: torch.Tensor, dtype: str, error: float) -> None:
    torch.manual_seed(0)
    module = make().to(getattr(torch, dtype))
    forms, said = _record(make, x, dtype)
    assert not [line for line in said if "no stand-in" in line]
    plain = copy.deepcopy(module)
    expected, _ = split_loss(plain(x))
    expected.backward()
    for form, document in forms.items():
        loss, gradients, buffers = _run(document, module, x)
        torch.testing.assert_close(loss.float(), expected.detach().float(), rtol=error, atol=0, msg=form)
        wanted = {name: parameter.grad for name, parameter in plain.named_parameters()}
        assert gradients.keys() == wanted.keys()
        for each, gradient in wanted.items():
            scale = max(gradient.norm(), 1e-3 * max(other.norm() for other in wanted.values()))
            assert (gradients[each] - gradient).norm() <= error * scale, (form, each)
        for each, after in dict(plain.named_buffers()).items():
            torch.testing.assert_close(buffers[each], after, rtol=error, atol=error)


def test_kernels_that_cannot_be_written_so_are_named() -> None:
    forms, said = _record(_Running, torch.randn(4, 8), "float32")
    for form in forms.values():
        without = [kernel["name"] for kernel in form["kernels"] if "computes" not in kernel]
        assert without
        assert all(any(line.startswith(f"no stand-in for {name}: ") for line in said) for name in without)


def test_stand_ins_are_of_compiled_forms_alone(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    assert main(["tiny-llama", "--stand-ins", "-o", str(tmp_path)]) == 2
    assert "--stand-ins: expected it with --backend inductor" in capsys.readouterr().err


BROKEN = [
    (lambda op, kernel: op.update(schema=1000), "schema out of range"),
    (lambda op, kernel: op["args"].pop(), "arguments, expected"),
    (lambda op, kernel: op["args"].__setitem__(0, {"v": 1000}), "reads 1000, which is not there"),
    (lambda op, kernel: op.update(outputs=[7777]), "makes 7777, expected"),
    (lambda op, kernel: kernel.update(computes=[]), "computes nothing"),
]


@pytest.mark.parametrize(("change", "fault"), BROKEN)
def test_checker_sees_a_broken_stand_in(change: Any, fault: str) -> None:
    document = copy.deepcopy(read_document(TINY / COMPILED_FILES["zero3"]))
    kernel = document["kernels"][1]
    change(next(op for op in kernel["computes"] if isinstance(op["args"][0], dict) and op["outputs"] != [None]), kernel)
    assert fault in "; ".join(faults_of(document))
