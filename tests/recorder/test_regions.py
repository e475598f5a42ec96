"""The compiled form whose layers are lowered each on its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from conftest import PLAIN
from dcrecord.building import build_without_weights
from dcrecord.options import Reporter
from dcrecord.recording import record_forms
from dcrecord.workload import Fill, Workload, call_by_position
from graph_checker import faults_of
from torch import nn


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.silu(self.inner(x * 2) + 1)


class _Layered(nn.Module):
    """A table and a head around two layers, each of which begins and ends elementwise."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Linear(16, 16)
        self.layers = nn.ModuleList([_Layer(), _Layer()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.table(x) * 3)
        for layer in self.layers:
            x = layer(x)
        return torch.log_softmax(x.float(), -1).mean()


class _Flat(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.only = _Layer()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.only(x).mean()


def _forms(make: Any, backend: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    options = replace(PLAIN, dtype="bfloat16", backend=backend)
    body, unknown = build_without_weights(make, options.torch_dtype)
    example = torch.randn(4, 16, dtype=torch.bfloat16)
    workload = Workload("module", body, call_by_position, {"x": example}, {"x": Fill()}, 4, unknown)
    head = {"format": "dc-graph/1", "name": "module", "recorder": {}}
    report = Reporter()
    forms = record_forms(workload, options, report)[1]
    return {name: {**head, **form} for name, form in forms.items()}, report.lines


def _layers_of(form: dict[str, Any], graph: int) -> list[str]:
    """Of each Triton kernel, the layers whose operators it computes, as far as its module tells."""
    modules = [form["modules"][op.get("module", 0)] for op in form["graphs"][graph]["ops"] if "kernel" in op]
    return [".".join(module.split(".")[:2]) for module in modules]


def test_no_kernel_reaches_across_layers() -> None:
    """Whole, the sum that ends a layer and the product that begins the next are one kernel; apart each layer has two."""
    apart, whole = (next(iter(_forms(_Layered, backend)[0].values())) for backend in ("inductor-layers", "inductor"))
    assert faults_of(apart) == []
    assert apart["backend"]["stages"] == []
    assert sorted(_layers_of(apart, 0)) == ["layers.0"] * 2 + ["layers.1"] * 2
    assert len(_layers_of(whole, 0)) < 6


def test_the_rest_runs_as_pytorch_has_it() -> None:
    """No kernel of Inductor's is outside of layers, and the loss is not decomposed."""
    apart = _forms(_Layered, "inductor-layers")[0]["layers"]
    called = {schema.split("(")[0] for schema in apart["schemas"]}
    assert {"aten::tanh", "aten::tanh_backward", "aten::_log_softmax", "aten::_log_softmax_backward_data"} <= called
    assert set(_layers_of(apart, 0)) == {"layers.0", "layers.1"}
    compiled = {operator for kernel in apart["kernels"] for operator in kernel["aten"]}
    assert not [operator for operator in compiled if "softmax" in operator or "tanh" in operator or "mean" in operator]


def test_the_backward_repeats_nothing_of_another_module() -> None:
    """tanh's result is saved, as eager autograd does it."""
    apart = _forms(_Layered, "inductor-layers")[0]["layers"]
    again = [apart["schemas"][op["schema"]].split("(")[0] for op in apart["graphs"][1]["ops"] if "schema" in op]
    assert "aten::tanh" not in again


def test_a_model_without_layers_is_not_lowered() -> None:
    forms, lines = _forms(_Flat, "inductor-layers")
    assert forms == {}
    assert any("the model has no list of modules" in line for line in lines)


def test_other_forms_stay_as_they_are() -> None:
    assert set(_forms(_Layered, "inductor")[0]) == {"zero3", "zero12"}
