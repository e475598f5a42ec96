"""What cannot run in a C++ process, found and said: which node, which module, what to do."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.fx import Node

from dcrecord.capture import Captured
from dcrecord.dropout import live_dropout
from dcrecord.errors import RecorderError
from dcrecord.module_paths import ModulePaths
from dcrecord.running_statistics import IN_PLACE_OPERATORS

# The problem of all nodes that drop something.
_DROPOUT = ("drops elements at random", "expected --no-dropout")


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


def check_runs_in_cpp(captured: Captured, paths: ModulePaths, body: nn.Module) -> None:
    """Throws RecorderError with all refusals of both graphs; those of dropout in one sentence."""
    nodes = [("forward", node) for node in captured.forward.graph.nodes]
    nodes += [("backward", node) for node in captured.backward.graph.nodes]
    problems = [(direction, node, problem) for direction, node in nodes if (problem := _problem(node)) is not None]
    dropped = [paths.of(node) for _, node, problem in problems if problem is _DROPOUT]
    found = [
        str(Refusal(direction, node.name, paths.of(node), *problem))
        for direction, node, problem in problems
        if problem is not _DROPOUT
    ]
    if dropped:
        found.append(live_dropout(body, dropped))
    if dropped and len(found) == 1:
        raise RecorderError(found[0])
    if found:
        things = f"{len(found)} {'node' if len(found) == 1 else 'nodes'}"
        lines = "\n".join(f"  {refusal}" for refusal in found)
        raise RecorderError(f"{things} of this model cannot run in a C++ process:\n{lines}")


def _problem(node: Node) -> tuple[str, str] | None:
    """Reason and remedy, or None for a node that runs."""
    if node.op not in ("call_function", "placeholder"):
        return None
    if _is_sparse(node.meta.get("val")):
        return "its result is a sparse tensor, which is not recorded", "expected dense gradients (sparse=False)"
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
        if _drops(node):
            return _DROPOUT
        return f"operator {target.name()} draws random numbers", "expected dropout probability 0 and no noise"
    return None


def _drops(node: Node) -> bool:
    """Whether what is drawn decides what to drop: the operator says so, or the module that it is of."""
    names = [argument.name for argument in node.target._schema.arguments]
    kinds = [str(kind) for _, kind in (node.meta.get("nn_module_stack") or {}).values()]
    return "dropout_p" in names or "drop" in node.target.name() or any("drop" in kind.lower() for kind in kinds[-1:])


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


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def _has_symbolic_shape(value: Any) -> bool:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return True
    if isinstance(value, torch.Tensor):
        return any(isinstance(length, torch.SymInt) for length in (*value.shape, *value.stride()))
    if isinstance(value, (tuple, list)):
        return any(map(_has_symbolic_shape, value))
    return False
