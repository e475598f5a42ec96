"""The tests' checker finds every fault that docs/reference/formats.md names, so that its silence means something."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import record_module
from graph_checker import faults_of
from torch import nn

Document = dict[str, Any]


class Small(nn.Module):
    """One layer with a buffer: t, mm, add, mul, mean."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3, bias=False)
        self.register_buffer("shift", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return (self.layer(rows).exp() + self.shift).mean()


@pytest.fixture(scope="module")
def good() -> Document:
    return record_module(Small, torch.zeros(2, 4))


def _first_op(document: Document, name: str, graph: int = 0) -> dict[str, Any]:
    return next(
        op for op in document["graphs"][graph]["ops"] if document["schemas"][op["schema"]].startswith(f"aten::{name}(")
    )


def _append_gradient(document: Document) -> None:
    outputs = document["graphs"][1]["outputs"]
    outputs.append(dict(outputs[0]))


def _second_loss(document: Document) -> None:
    outputs = document["graphs"][0]["outputs"]
    outputs.append(dict(outputs[0]))


def _swap_ops(document: Document) -> None:
    ops = document["graphs"][0]["ops"]
    ops[0], ops[1] = ops[1], ops[0]


def _share_storage(document: Document) -> None:
    op = _first_op(document, "exp")
    read, made = op["args"][0]["v"], op["outputs"][0]
    document["values"][made]["storage"] = document["values"][read]["storage"]


def _view_of_something_else(document: Document) -> None:
    made = _first_op(document, "t")["outputs"][0]
    buffer = document["buffers"][0]["value"]
    document["values"][made] |= {"shape": [3], "strides": [1], "storage": document["values"][buffer]["storage"]}


BROKEN: list[tuple[str, Callable[[Document], Any], str]] = [
    ("other format", lambda d: d.update(format="dc-graph/2"), "format is not"),
    ("name with a slash", lambda d: d.update(name="a/b"), "name has other characters"),
    ("key missing", lambda d: d.pop("tokens"), "keys "),
    ("root module missing", lambda d: d["modules"].__setitem__(0, "layer"), "modules[0]"),
    ("storage id out of range", lambda d: d["values"][0].update(storage=99), "storage out of range"),
    ("value id out of range", lambda d: _first_op(d, "mm")["args"].__setitem__(0, {"v": 999}), "out of range"),
    ("schema id out of range", lambda d: _first_op(d, "mm").update(schema=99), "schema or module"),
    ("module id out of range", lambda d: _first_op(d, "mm").update(module=99), "schema or module"),
    ("view beyond its storage", lambda d: d["values"][0].update(offset=1), "beyond its storage"),
    ("strides missing", lambda d: d["values"][0].update(strides=[1]), "as many strides"),
    ("used before produced", _swap_ops, "before it is there"),
    ("produced twice", lambda d: _first_op(d, "exp").update(outputs=_first_op(d, "mm")["outputs"]), "produced twice"),
    ("alias where the schema allows none", _share_storage, "does not allow"),
    ("view of what it does not read", _view_of_something_else, "does not allow"),
    ("argument missing", lambda d: _first_op(d, "mm")["args"].pop(), "arguments, expected 2"),
    ("argument of another type", lambda d: _first_op(d, "mm")["args"].__setitem__(1, "x"), "argument mat2"),
    ("outputs missing", lambda d: _first_op(d, "mm").update(outputs=[]), "outputs, expected 1"),
    ("list where there is none", lambda d: _first_op(d, "mm").update(list=True), "list is wrong"),
    ("recompute in the forward", lambda d: _first_op(d, "mm").update(recompute=True), "recompute in a forward"),
    ("two losses", _second_loss, "exactly one scalar loss"),
    ("two gradients of one parameter", _append_gradient, "two gradients"),
    ("gradient of another shape", lambda d: d["params"][0].update(value=d["buffers"][0]["value"]), "another shape"),
    ("gradient of a frozen parameter", lambda d: d["params"][0].update(requires_grad=False), "frozen"),
    ("saved value that was not saved", lambda d: d["graphs"][0].update(outputs=d["graphs"][0]["outputs"][:1]), "not saved"),
    ("output that is not there", lambda d: d["graphs"][0]["outputs"][0].update(value=len(d["values"]) - 1), "not there"),
    ("input twice", lambda d: d["graphs"][0]["inputs"].append(d["graphs"][0]["inputs"][0]), "an input twice"),
    ("buffer of another length", lambda d: d["buffers"][0].update(data="AAAA"), "as many bytes"),
    ("tokens without vocabulary", lambda d: d["inputs"][0].update(fill={"kind": "tokens"}), "wrong fill"),
]


@pytest.mark.parametrize(("change", "fault"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_fault_is_found(good: Document, change: Callable[[Document], Any], fault: str) -> None:
    document = copy.deepcopy(good)
    change(document)
    assert any(fault in found for found in faults_of(document)), faults_of(document)
