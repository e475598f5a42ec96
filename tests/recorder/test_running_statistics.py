"""Batch norms are recorded with the statistics and counters that they leave in their buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import operators, record_module
from dcrecord.errors import RecorderError
from dcrecord.interpret import Interpreter
from refused_modules import Layer
from torch import nn

IMAGES = torch.linspace(-1, 1, 2 * 3 * 6 * 6, dtype=torch.bfloat16).view(2, 3, 6, 6)


class Normed(nn.Module):
    """Two convolutions, each with a batch norm; the mean of squares."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, bias=False)
        self.norm = nn.BatchNorm2d(4, **settings)
        self.second = nn.Conv2d(4, 5, 3)
        self.last = nn.BatchNorm2d(5, **settings)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.last(self.second(torch.relu(self.norm(self.first(images)))))
        return hidden.float().square().mean()


def statistics(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: buffer.clone() for name, buffer in module.named_buffers()}


@pytest.mark.parametrize("partitioner", ["mincut", "default"])
def test_two_micro_steps_leave_the_statistics_of_the_module(partitioner: str) -> None:
    torch.manual_seed(0)
    module = Normed().bfloat16()
    document = record_module(Normed, IMAGES, dtype="bfloat16", partitioner=partitioner)
    interpreter = Interpreter.of(document, torch.device("cpu"))
    parameters = dict(module.named_parameters())
    given = {entry["value"]: parameters[entry["name"]].detach() for entry in document["params"]} | interpreter.buffers()
    for images in (IMAGES, IMAGES.square()):
        results = interpreter.run(document["graphs"][0], {**given, document["inputs"][0]["value"]: images})
        loss = results[document["graphs"][0]["outputs"][0]["value"]]
        assert torch.equal(loss, module(images).detach())
    names = {entry["name"]: entry["value"] for entry in document["buffers"]}
    assert sorted(names) == sorted(statistics(module))
    for name, expected in statistics(module).items():
        assert torch.equal(given[names[name]], expected), name
    assert given[names["last.num_batches_tracked"]] == 2


def test_statistics_are_written_where_they_lie() -> None:
    document = record_module(Normed, IMAGES, dtype="bfloat16")
    forward = document["graphs"][0]
    assert operators(document, "forward").count("aten::_native_batch_norm_legit") == 2
    assert operators(document, "forward").count("aten::add_.Tensor") == 2
    assert {output["kind"] for output in forward["outputs"]} == {"loss", "saved"}
    storages = {document["values"][entry["value"]]["storage"] for entry in document["buffers"]}
    counts = [op for op in forward["ops"] if document["schemas"][op["schema"]].startswith("aten::add_")]
    assert all(document["values"][op["outputs"][0]]["storage"] in storages for op in counts)


def test_saved_statistics_are_float32_as_on_a_gpu() -> None:
    document = record_module(Normed, IMAGES, dtype="bfloat16")
    norm = next(op for op in document["graphs"][0]["ops"] if "batch_norm" in document["schemas"][op["schema"]])
    assert [document["values"][value]["dtype"] for value in norm["outputs"]] == ["bfloat16", "float32", "float32"]


def test_repeated_batch_norm_does_not_count_twice() -> None:
    document = record_module(Normed, IMAGES, dtype="bfloat16", checkpoint=("norm",))
    assert "aten::_native_batch_norm_legit" not in operators(document, "backward")
    assert "aten::add_.Tensor" not in operators(document, "backward")


@pytest.mark.parametrize("settings", [{"track_running_stats": False}, {"affine": False}])
def test_batch_norm_without_statistics_or_weights_is_recorded(settings: dict[str, Any]) -> None:
    document = record_module(lambda: Normed(**settings), IMAGES, dtype="bfloat16")
    assert operators(document, "backward").count("aten::native_batch_norm_backward") == 2


def test_batch_norm_in_evaluation_changes_nothing() -> None:
    document = record_module(lambda: Normed().eval(), IMAGES, dtype="bfloat16")
    assert not any("(a!)" in schema for schema in document["schemas"])
    assert operators(document, "forward").count("aten::_native_batch_norm_legit_no_training") == 2


def test_rows_without_a_place_need_no_cudnn() -> None:
    document = record_module(lambda: nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), torch.zeros(4, 8))
    assert "aten::_native_batch_norm_legit" in operators(document, "forward")


def test_autocast_batch_norm_has_weights_of_float32() -> None:
    document = record_module(Normed, IMAGES.float(), autocast="bfloat16")
    gradients = [output["value"] for output in document["graphs"][1]["outputs"]]
    assert {document["values"][value]["dtype"] for value in gradients} == {"float32"}
    assert operators(document, "forward").count("aten::_native_batch_norm_legit") == 2


class Counting(Layer):
    """Counts its calls, and keeps what `keep` makes of the count."""

    def __init__(self, keep: Callable[[Counting], None]) -> None:
        super().__init__()
        self.keep = keep
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("other", torch.zeros(()))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.keep(self)
        return (self.layer(rows) * self.other).mean()


def _count(module: Counting) -> None:
    module.count += 1


def _read(module: Counting) -> None:
    module.other += 1


def _copy(module: Counting) -> None:
    module.count.copy_(module.other + 1)


def test_counter_that_nobody_reads_is_recorded() -> None:
    document = record_module(lambda: Counting(_count), torch.zeros(4, 8))
    assert "aten::add_.Tensor" in operators(document, "forward")


@pytest.mark.parametrize(("keep", "name"), [(_read, "other"), (_copy, "count")])
def test_other_changes_are_refused(keep: Callable[[Counting], None], name: str) -> None:
    with pytest.raises(RecorderError, match=rf"changes its inputs or buffers in place \({name}\)"):
        record_module(lambda: Counting(keep), torch.zeros(4, 8))
