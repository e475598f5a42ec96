"""Compiled forms: what Inductor makes of tiny-llama without a GPU, and what is refused."""

from __future__ import annotations

import copy
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import PLAIN, ROOT
from dcrecord.building import build_without_weights
from dcrecord.command_line import main
from dcrecord.errors import RecorderError
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document, read_text
from dcrecord.inductor.kernels import describe_kernel, source_of
from dcrecord.inductor.lines import _LineReader
from dcrecord.inductor.releases import RELEASE, insert_releases
from dcrecord.options import Reporter
from dcrecord.recording import record_forms
from dcrecord.workload import Fill, Workload, call_by_position
from graph_checker import faults_of
from jsonschema_rs import Draft202012Validator
from torch import Tensor, nn
from torch._inductor.codegen.triton import TritonKernel
from torch.fx import Graph, GraphModule

TRACES = ROOT / "traces"
SCHEMA = json.loads((ROOT / "docs" / "reference" / "schemas" / "graph.schema.json").read_text())
WORKLOADS = sorted({path.parent.name for path in TRACES.glob("*/graph-inductor-*.json.xz")})
FORMS = [(name, form) for name in WORKLOADS for form in COMPILED_FILES]


def _form(name: str, form: str) -> dict[str, Any]:
    return read_document(TRACES / name / COMPILED_FILES[form])


def test_committed_forms_of_tiny_llama_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    """In another process with another hash seed; the ATen graph is the same as without them."""
    words = shlex.split(_form("tiny-llama", "zero3")["recorder"]["command"])
    assert words[:3] == ["python", "-m", "dcrecord"] and words[-5:-2] == ["--backend", "inductor", "--stand-ins"]
    environment = {**os.environ, "PYTHONHASHSEED": "20251", "PYTHONPATH": str(ROOT / "tools" / "dcrecord" / "src")}
    command = [sys.executable, "-m", "dcrecord", *words[3:-2], "-o", "made"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for file in (GRAPH_FILE, *COMPILED_FILES.values()):
        assert read_text(tmp_path / "made" / file) == read_text(TRACES / "tiny-llama" / file), file


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_form_satisfies_every_rule_and_fits_the_schema(name: str, form: str) -> None:
    document = _form(name, form)
    assert faults_of(document) == []
    Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_form_is_of_the_same_model(name: str, form: str) -> None:
    """Parameters with their gradients, inputs and held outputs; no marker of a release is left."""
    document, whole = _form(name, form), read_document(TRACES / name / GRAPH_FILE)

    def shown(of: dict[str, Any]) -> Any:
        shape = {index: value["shape"] for index, value in enumerate(of["values"])}
        params = [(entry["name"], shape[entry["value"]], entry["requires_grad"]) for entry in of["params"]]
        inputs = [(entry["name"], shape[entry["value"]], entry["fill"]) for entry in of["inputs"]]
        outputs = [output for graph in of["graphs"] for output in graph["outputs"] if output["kind"] != "saved"]
        returned = [(each["kind"], each.get("name"), each.get("param"), shape[each["value"]]) for each in outputs]
        return params, inputs, returned, of["tokens"], of["options"]

    assert shown(document) == shown(whole)
    assert not [schema for schema in document["schemas"] if not schema.startswith("aten::")]


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_kernels_move_no_more_than_their_buffers(name: str, form: str) -> None:
    document = _form(name, form)
    for graph in document["graphs"]:
        for op in graph["ops"]:
            for value, size in [*op.get("reads", []), *op.get("writes", [])]:
                assert 0 < size <= document["storages"][document["values"][value]["storage"]]


def test_rows_of_the_embedding_count_as_they_are_looked_up() -> None:
    document = _form("llama-3.2-1b", "zero3")
    table = document["params"][0]["value"]
    first = next(op for op in document["graphs"][0]["ops"] if "kernel" in op and table in dict(op["reads"]))
    assert dict(first["reads"])[table] == 4 * 2048 * 2048 * 2  # tokens, width, bytes
    assert prod(document["values"][table]["shape"]) * 2 == 525_336_576


BROKEN = [
    (lambda launch, kernel: launch.update(kernel=1000), "kernel or module out of range"),
    (lambda launch, kernel: launch["args"].pop(), "arguments, expected"),
    (lambda launch, kernel: launch["args"].__setitem__(0, 7), "argument "),
    (lambda launch, kernel: launch["reads"].append([launch["outputs"][0], 4]), "before it is there"),
    (lambda launch, kernel: launch.update(outputs=[0]), "is produced twice, or no argument"),
    (lambda launch, kernel: launch.update(reuses=[0]), "is no output of its op"),
    (lambda launch, kernel: launch["writes"][0].__setitem__(1, -1), "less than nothing"),
]


@pytest.mark.parametrize(("change", "fault"), BROKEN)
def test_checker_sees_a_broken_launch(change: Any, fault: str) -> None:
    document = copy.deepcopy(_form("tiny-llama", "zero3"))
    launch = next(op for op in document["graphs"][0]["ops"] if "kernel" in op and op["reads"])
    change(launch, document["kernels"][launch["kernel"]])
    assert fault in "; ".join(faults_of(document))


def test_checker_sees_a_read_of_what_is_overwritten() -> None:
    document = copy.deepcopy(_form("tiny-llama", "zero3"))
    ops = document["graphs"][1]["ops"]
    position = next(index for index, op in enumerate(ops) if op.get("reuses"))
    storage = document["values"][ops[position]["reuses"][0]]["storage"]
    older = next(
        value
        for op in document["graphs"][0]["ops"]
        for value in op["outputs"]
        if value is not None and document["values"][value]["storage"] == storage
    )
    later = next(op for op in ops[position + 1 :] if "kernel" in op)
    later["reads"].append([older, 4])
    assert "overwritten" in "; ".join(faults_of(document)) or "before it is there" in "; ".join(faults_of(document))


def test_a_release_stands_behind_every_consumer_of_a_parameter() -> None:
    """Through views of it, and once behind an op that reads two."""
    aten, graph = torch.ops.aten, Graph()
    x, weight, bias = (graph.placeholder(name) for name in ("x", "weight", "bias"))
    turned = graph.call_function(aten.t.default, (weight,))
    product = graph.call_function(aten.addmm.default, (bias, x, turned))
    doubled = graph.call_function(aten.mul.Tensor, (product, 2))
    graph.output((doubled, product))
    for node in graph.nodes:
        node.meta["val"] = None
    module = GraphModule({}, graph)
    insert_releases(module, {"weight", "bias"})
    markers = [node for node in module.graph.nodes if node.target is RELEASE]
    assert [node.args[0] for node in markers] == [product]
    assert doubled.args[0] is markers[0]
    assert module.graph.output_node().args[0] == (doubled, markers[0])


class _Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x)).relu().mean()


class _Shifted(nn.Module):
    """Labels one place later, as decoders of encoder-decoder models read them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 8)

    def forward(self, labels: torch.Tensor) -> torch.Tensor:
        shifted = labels.new_zeros(labels.shape)
        shifted[:, 1:] = labels[:, :-1].clone()
        shifted[:, 0] = 5
        return self.table(shifted.masked_fill_(shifted == -100, 7)).sum()


class _Repeated(nn.Module):
    """One norm behind another: the gradients of its weight are sums of columns of two tensors, and are added up."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4096, 4096, bias=False)
        self.norm = nn.LayerNorm(4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.norm(self.norm(x).tanh()).float().square().mean()


def _compiled(make: Callable[[], nn.Module], example: torch.Tensor, dtype: str) -> dict[str, dict[str, Any]]:
    """The compiled forms of a module."""
    options = replace(PLAIN, dtype=dtype, backend="inductor")
    body, unknown = build_without_weights(make, options.torch_dtype)
    fills = {"x": Fill() if example.is_floating_point() else Fill(10)}
    workload = Workload("module", body, call_by_position, {"x": example}, fills, example.shape[0], unknown)
    head = {"format": "dc-graph/1", "name": "module", "recorder": {}}
    forms = {name: {**head, **form} for name, form in record_forms(workload, options, Reporter())[1].items()}
    assert {name: faults_of(form) for name, form in forms.items()} == {"zero3": [], "zero12": []}
    return forms


def test_running_statistics_are_changed_where_they_are() -> None:
    """By kernels of the forward, once each; they are no outputs, and no value is over."""
    for form in _compiled(_Normed, torch.randn(2, 3, 8, 8, dtype=torch.bfloat16), "bfloat16").values():
        names = {entry["value"]: entry["name"] for entry in form["buffers"]}
        forward, backward = form["graphs"]
        written = [names[value] for op in forward["ops"] for value, _ in op.get("writes", []) if value in names]
        assert sorted(written) == ["norm.num_batches_tracked", "norm.running_mean", "norm.running_var"]
        changed = {output for op in forward["ops"] for output in op["outputs"] if output is not None}
        storages = {form["values"][value]["storage"] for value in names}
        assert not storages & {form["values"][value]["storage"] for value in changed}
        assert not set(names) & {entry["value"] for entry in backward["inputs"]}


class _Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(96, 128, 3, padding=1)
        self.second = nn.Conv2d(128, 128, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu()).float().square().mean()


def test_convolutions_hand_on_the_layout_that_cudnn_gives() -> None:
    """Channels last, which Inductor asks for. A CPU's layout would take a copy behind each; and so would gradients, were what
    the forward saves not taken as it lies."""
    for form in _compiled(_Images, torch.randn(2, 96, 8, 8, dtype=torch.bfloat16), "bfloat16").values():
        seen = []
        for op in (op for graph in form["graphs"] for op in graph["ops"] if "schema" in op):
            name = form["schemas"][op["schema"]].partition("(")[0]
            if name == "aten::convolution":
                seen.append(op["outputs"][0])
            elif name == "aten::convolution_backward":
                seen.append(op["args"][0]["v"])
        strides = [form["values"][value]["strides"] for value in seen]
        assert [*strides[:2], strides[3]] == 3 * [[8192, 1, 1024, 128]]  # the loss's gradient lies otherwise


def test_constants_of_the_code_do_not_stop_a_lowering() -> None:
    for form in _compiled(_Shifted, torch.randint(0, 10, (2, 6)), "float32").values():
        assert [output["kind"] for output in form["graphs"][1]["outputs"]] == ["gradient"]


def test_kernels_read_what_the_wrapper_has_summed_up_before() -> None:
    """Inductor finishes sums of columns outside of the kernels, in the place of nodes that it had fused into another."""
    form = _compiled(_Repeated, torch.randn(8192, 4096, dtype=torch.bfloat16), "bfloat16")["zero12"]
    assert [kernel for kernel in form["kernels"] if dict(kernel["signature"]).get("ws_ptr")]
    storages = [value["storage"] for value in form["values"]]
    launches = [op for graph in form["graphs"] for op in graph["ops"] if "kernel" in op]
    for op in launches:
        names = [name for name, _ in form["kernels"][op["kernel"]]["signature"]]
        read = {argument["v"] for name, argument in zip(names, op["args"]) if name.startswith("in_ptr")}
        assert {storages[value] for value in read} <= {storages[value] for value, _ in op["reads"]}
        assert not read & {value for value, _ in op["writes"]}


def test_an_error_of_inductors_own_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of release 2.11 in scans that it splits over thread blocks."""

    def load(self: TritonKernel, name: str, index: Any) -> None:
        raise TypeError("no shape")

    monkeypatch.setattr(TritonKernel, "load", load)
    body, unknown = build_without_weights(_Normed, torch.bfloat16)
    example = torch.randn(2, 3, 8, 8, dtype=torch.bfloat16)
    workload = Workload("module", body, call_by_position, {"x": example}, {"x": Fill()}, 2, unknown)
    said = Reporter()
    assert record_forms(workload, replace(PLAIN, dtype="bfloat16", backend="inductor"), said)[1] == {}
    refused = [line for line in said.lines if line.startswith("not compiled for")]
    assert len(refused) == 2
    assert all(line.endswith("InductorError: TypeError: no shape, in TritonKernel.load") for line in refused)


def test_lines_that_are_not_known_are_refused_by_name() -> None:
    class SomeNewLine:
        pass

    with pytest.raises(RecorderError, match="Inductor's line SomeNewLine has no form in a graph file"):
        _LineReader().read(SomeNewLine())
    with pytest.raises(RecorderError, match="no form in a graph file: do_something"):
        _LineReader().read("do_something(buf0)")


def test_kernels_that_are_not_known_are_refused_by_name() -> None:
    with pytest.raises(RecorderError, match="Inductor's cpp_0 is no Triton kernel"):
        source_of("async_compile.cpp('''...''')", "cpp_0")
    with pytest.raises(RecorderError, match="Inductor's kernel k is foreach: expected pointwise"):
        describe_kernel("k", "@triton_heuristics.foreach(\n", {}, {})


def test_variables_that_change_what_inductor_makes_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    assert main(["tiny-llama", "--backend", "inductor", "-o", str(tmp_path)]) == 2
    assert "--backend inductor with TORCHINDUCTOR_MAX_AUTOTUNE set" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
