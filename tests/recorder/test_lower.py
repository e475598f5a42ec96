"""`dcrecord lower`: the compiled form of graphs that are split and decomposed already, as a running job's are."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from conftest import PLAIN, ROOT
from dcrecord.building import build_without_weights
from dcrecord.capture import Captured
from dcrecord.command_line import main
from dcrecord.errors import RecorderError
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document, to_bytes
from dcrecord.inductor import lowering, record
from dcrecord.lower_command import form_of
from dcrecord.options import Reporter
from dcrecord.recording import record_forms
from dcrecord.replay import replay
from dcrecord.serialise import document_of
from dcrecord.workload import Fill, Workload, call_by_position
from dcsim_deepspeed.live_graph import _in_aten, _mark_repeated
from graph_checker import faults_of
from torch import nn


class Attending(nn.Module):
    """An embedding, normed attention and a gated layer: views, reductions, counts, casts, selections of several results."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 32)
        self.norm = nn.LayerNorm(32)
        self.mixed = nn.Linear(32, 96)
        self.gated = nn.Linear(32, 64)
        self.register_buffer("scale", torch.arange(32).float())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens)
        queries, keys, values = self.mixed(self.norm(x)).chunk(3, dim=-1)
        x = x + nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        gate, up = self.gated(x).chunk(2, dim=-1)
        positions = torch.arange(tokens.shape[1]).unsqueeze(1)
        return ((nn.functional.silu(gate) * up + positions) * self.scale).float().square().mean()


class Rotated(nn.Module):
    """Halves of a tensor that change places, whose gradients are scattered into zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mixed(x)
        return (x * x.sin() + torch.cat((-x[..., 16:], x[..., :16]), -1) * x.cos()).float().square().mean()


class Convolved(nn.Module):
    """A convolution with a batch norm, which changes its buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.first(x)).relu().float().mean()


def recorded(make: Any, example: torch.Tensor, dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of a module: its graphs as a running job's recording has them, and the compiled form that the recorder makes."""
    options = replace(PLAIN, dtype=dtype, backend="inductor")
    body, unknown = build_without_weights(make, options.torch_dtype)
    fills = {"x": Fill() if example.is_floating_point() else Fill(10)}
    workload = Workload("module", body, call_by_position, {"x": example}, fills, example.shape[0], unknown)
    halves: dict[bool, Any] = {}
    given: list[Any] = []
    split, make_forms = lowering._partition, record.compiled_documents

    def keep_halves(joint: Any, parameters: set[str], outputs: int, target: Any) -> Any:
        made = split(joint, parameters, outputs, target)
        halves[target.gathers] = copy.deepcopy(made)
        return made

    def keep_given(captured: Captured, contents: Any, options: Any, report: Any) -> Any:
        given.extend([captured, contents])
        return make_forms(captured, contents, options, report)

    with mock.patch.object(lowering, "_partition", keep_halves), mock.patch.object(record, "compiled_documents", keep_given):
        document, forms = record_forms(workload, options, Reporter())
    (forward, backward), (captured, contents) = halves[True], given
    _mark_repeated(forward.graph, backward.graph)
    for half in (forward, backward):
        _in_aten(half.graph)
    live = Captured(forward, backward, captured.input_kinds, captured.output_names, captured.gradients_of, None, 0)
    head = {"format": "dc-graph/1", "name": "module", "recorder": {"deepspeed": "0.19.8", "torch": "2.11.0"}}
    known = {key: document[key] for key in ("options", "tokens")}
    written = {**head, **known, **document_of(live, replay(live), contents)}
    return json.loads(to_bytes(written, compressed=False)), forms["zero3"]


def launched(form: dict[str, Any]) -> list[list[Any]]:
    """What each op calls, what it reads and writes by shape and bytes, and whose memory it takes over."""

    def shape(value: int) -> Any:
        return form["values"][value]["shape"], form["values"][value]["strides"], form["values"][value]["dtype"]

    def moved(pairs: list[Any]) -> list[Any]:
        return [(shape(value), size) for value, size in pairs]

    def called(op: dict[str, Any]) -> Any:
        if "kernel" not in op:
            return form["schemas"][op["schema"]]
        kernel = form["kernels"][op["kernel"]]
        return kernel["kind"], kernel["signature"], kernel["loads"], kernel["stores"], kernel["reductions"]

    return [
        [
            (called(op), moved(op.get("reads", [])), moved(op.get("writes", [])), len(op.get("reuses", [])),
             form["modules"][op["module"]])
            for op in graph["ops"]
        ]
        for graph in form["graphs"]
    ]  # fmt: skip


CASES = [
    (Attending, torch.randint(0, 10, (2, 16)), "bfloat16"),
    (Attending, torch.randint(0, 10, (2, 16)), "float32"),
    (Convolved, torch.randn(2, 3, 16, 16), "bfloat16"),
]


@pytest.mark.parametrize(("make", "example", "dtype"), CASES)
def test_graphs_that_are_split_already_give_the_same_kernels(make: Any, example: torch.Tensor, dtype: str) -> None:
    written, form = recorded(make, example.to(getattr(torch, dtype)) if example.is_floating_point() else example, dtype)
    again = form_of(written, "dcrecord lower module")
    assert faults_of(again) == []
    assert launched(again) == launched(form)
    kinds = [[output["kind"] for output in graph["outputs"]] for graph in form["graphs"]]
    assert [[output["kind"] for output in graph["outputs"]] for graph in again["graphs"]] == kinds


def test_a_process_of_its_own_lowers_them_too(tmp_path: Path) -> None:
    """As rank 0 starts it: nothing before has looked for CUDA."""
    written, form = recorded(Rotated, torch.randn(2, 16, 32, dtype=torch.bfloat16), "bfloat16")
    assert any("slice_scatter" in schema for schema in written["schemas"])
    (tmp_path / GRAPH_FILE).write_bytes(to_bytes(written, compressed=True))
    command = [sys.executable, "-m", "dcrecord", "lower", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert launched(read_document(tmp_path / COMPILED_FILES["zero3"])) == launched(form)


def test_a_workload_of_the_recorders_own_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / GRAPH_FILE).write_bytes((ROOT / "traces/tiny-llama" / GRAPH_FILE).read_bytes())
    assert main(["lower", str(tmp_path)]) == 2
    assert "record others with --backend inductor" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [GRAPH_FILE]


def test_another_torch_is_refused() -> None:
    with pytest.raises(RecorderError, match=r"the job ran torch 2.10.0: expected 2\."):
        form_of({"name": "x", "recorder": {"deepspeed": "0.19.8", "torch": "2.10.0"}}, "")
