"""Launches that Inductor's scheduler has moved are put back, and what is still moved is named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dcsim_deepspeed import inductor_order


class Node:
    """A node of Inductor's scheduler that holds operations by number; launches and waits hold one."""

    def __init__(self, kind: str, *numbers: int) -> None:
        self.kind = kind
        self.inner = [
            SimpleNamespace(
                node=SimpleNamespace(
                    kind=kind,
                    get_operation_name=lambda number=number: f"op{number}",
                    op_overload=SimpleNamespace(name=lambda: f"dc::{kind}"),
                )
            )
            for number in numbers
        ]

    def get_nodes(self) -> list[Any]:
        return self.inner

    def __repr__(self) -> str:
        return self.kind + "+".join(each.node.get_operation_name()[2:] for each in self.inner)


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor_order, "_is_launch", lambda node: node.kind == "launch")
    monkeypatch.setattr(inductor_order, "_is_placed", lambda operation: operation.kind in ("launch", "wait"))


def test_launches_behind_a_fused_loss_come_back() -> None:
    nodes = [Node("op", 1), Node("op", 3), Node("op", 5), Node("op", 0, 6), Node("launch", 2), Node("launch", 4)]
    put_back = inductor_order._with_launches_put_back(nodes)
    assert str(put_back) == "[op1, launch2, op3, launch4, op5, op0+6]"
    assert inductor_order._first_moved(put_back) is None


def test_launches_in_place_stay() -> None:
    nodes = [Node("launch", 0), Node("launch", 1), Node("op", 2), Node("launch", 3)]
    assert str(inductor_order._with_launches_put_back(nodes)) == "[launch0, launch1, op2, launch3]"


def test_what_is_still_moved_is_named() -> None:
    assert inductor_order._first_moved([Node("wait", 4), Node("op", 3), Node("wait", 2)]) == "dc::wait (op2, behind op4)"
