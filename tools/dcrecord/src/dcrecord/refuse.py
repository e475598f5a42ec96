"""What cannot run in a C++ process, found and said: which node, which module, what to do."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from dcrecord.capture import Captured
from dcrecord.errors import RecorderError
from dcrecord.module_paths import ModulePaths
from dcrecord.running_statistics import IN_PLACE_OPERATORS


@dataclass(frozen=True)
class Refusal:
    """One node that cannot run, where it comes from, and the way out."""

    direction: str
    node: str
    module: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        where = f"module {self.module}" if self.module else "the root module"
        return f"{self.direction} node {self.node} ({where}): {self.reason}; {self.remedy}"


def check_runs_in_cpp(captured: Captured, paths: ModulePaths) -> None:
    """Throws RecorderError with all refusals of both graphs."""
    found = list(_refusals("forward", captured.forward, paths)) + list(_refusals("backward", captured.backward, paths))
    if found:
        things = "1 node" if len(found) == 1 else f"{len(found)} nodes"
        lines = "\n".join(f"  {refusal}" for refusal in found)
        raise RecorderError(f"{things} of this model cannot run in a C++ process:\n{lines}")


def _refusals(direction: str, graph: GraphModule, paths: ModulePaths) -> Iterator[Refusal]:
    for node in graph.graph.nodes:
        problem = _problem(node)
        if problem is not None:
            yield Refusal(direction, node.name, paths.of(node), *problem)


def _problem(node: Node) -> tuple[str, str] | None:
    """Reason and remedy, or None for a node that runs."""
    if node.op not in ("call_function", "placeholder"):
        return None
    if _has_symbolic_shape(node.meta.get("val")):
        return "its shape depends on data", "expected static shapes: pad or mask instead of selecting elements"
    if node.op == "placeholder" or node.target is operator.getitem:
        return None
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return (
            f"higher-order operator {node.target.name()} exists in Python only",
            "expected plain tensor operators in its place",
        )
    if not isinstance(node.target, torch._ops.OpOverload):
        return f"Python function {node.target} is no operator", "expected plain tensor operators in its place"
    return _operator_problem(node)


def _operator_problem(node: Node) -> tuple[str, str] | None:
    target = node.target
    if target.namespace != "aten":
        return (
            f"operator {target.name()} is not PyTorch's own, whose namespace is aten",
            "expected aten operators in its place",
        )
    if target._schema.is_mutable and target not in IN_PLACE_OPERATORS:
        return f"operator {target.name()} changes its input in place", "expected the variant that returns a new tensor"
    if torch.Tag.nondeterministic_seeded in target.tags and _draws_random_numbers(node):
        return f"operator {target.name()} draws random numbers", "expected dropout probability 0 and no noise"
    return None


def _draws_random_numbers(node: Node) -> bool:
    """Attention and dropout operators with probability 0 carry the tag of random operators but draw nothing."""
    arguments = {argument.name: position for position, argument in enumerate(node.target._schema.arguments)}
    for name in ("dropout_p", "p"):
        position = arguments.get(name)
        if position is None:
            continue
        default = node.target._schema.arguments[position].default_value
        given = node.args[position] if position < len(node.args) else node.kwargs.get(name, default)
        return given != 0
    return True


def _has_symbolic_shape(value: Any) -> bool:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    if isinstance(value, torch.Tensor):
        return any(isinstance(length, torch.SymInt) for length in (*value.shape, *value.stride()))
    if isinstance(value, (tuple, list)):
        return any(map(_has_symbolic_shape, value))
    return False
