"""What a Triton kernel computes, as ATen operators: so that a machine without a GPU can run a compiled graph.

A kernel is made of loops of Inductor's, each a body that says what happens to one element. A body is run here once for all
elements of its loop at the same time, on tensors without memory, and the operators that this takes are written down
(`loop_values.py`). So a stand-in has the kernel's own order of casts, and needs no node of a graph for a buffer that only
the kernel knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.virtualized import V
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from dcrecord.arguments import TensorReference, encode_call
from dcrecord.errors import RecorderError
from dcrecord.inductor.loop_values import LoopValues, NoStandIn, extent_of


@dataclass(frozen=True)
class _Held(TensorReference):
    """Value `number` of a stand-in, among arguments of its operators."""

    number: int


@dataclass(frozen=True)
class StandIn:
    """ops   calls of operators; their tensors are numbered: first the launch's arguments by position, then what each makes"""

    ops: list[dict[str, Any]]

    def to_json(self, schema: Callable[[Any], int]) -> list[dict[str, Any]]:
        """As an entry of a document; `schema` gives an operator's place in its table."""
        return [{**op, "schema": schema(op["schema"])} for op in self.ops]


class _Tape(TorchDispatchMode):
    """Writes down the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:  # PyTorch's own, on the way to a tensor without gradients
            return args[0]
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result


def stand_in_of(node: Any, names: list[str | None], reused: dict[str, str]) -> StandIn:
    """Of the kernel that does the scheduler's node `node`. Throws NoStandIn with the reason where there is none.

    names    by position of a launch's argument: the buffer that it points to, None for a number
    reused   by name of a buffer: the one that has taken over its memory
    """
    try:
        with _disable_current_modes(), torch.no_grad():
            held = [None if name is None else _argument(name) for name in names]
            values = LoopValues(dict(zip(names, held)), reused)
            with _Tape() as tape:
                for part in node.get_nodes():
                    values.run(part._body)
                values.finish()
            return StandIn(_ops_of(tape, held))
    except (NotImplementedError, TypeError, ValueError, RuntimeError, AttributeError, RecorderError) as error:
        raise NoStandIn(f"{type(error).__name__}: {str(error).splitlines()[0][:120]}") from error


def _argument(name: str) -> torch.Tensor:
    return torch.empty(extent_of(name), dtype=V.graph.get_dtype(name), device="meta")


def _ops_of(tape: _Tape, arguments: list[torch.Tensor | None]) -> list[dict[str, Any]]:
    """The calls that something comes of, with numbers for tensors."""
    numbers = {id(tensor): number for number, tensor in enumerate(arguments) if tensor is not None}
    used: set[int] = set()
    kept = []
    for call in reversed(tape.calls):
        operator, args, kwargs, result = call
        if operator._schema.is_mutable or id(result) in used:
            used.update(id(tensor) for tensor in _tensors(args, kwargs))
            kept.append(call)
    ops = []
    count = len(arguments)
    for operator, args, kwargs, result in reversed(kept):
        if not isinstance(result, torch.Tensor):
            raise RecorderError(f"{operator} returns no tensor")
        encoded = encode_call(operator, *_numbered(args, kwargs, numbers), lambda held: held.number)
        output = None
        if not operator._schema.is_mutable:
            numbers[id(result)] = output = count
            count += 1
        ops.append({"schema": operator, "args": encoded, "outputs": [output]})
    return ops


def _tensors(args: Any, kwargs: dict[str, Any]) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


def _numbered(args: Any, kwargs: dict[str, Any], numbers: dict[int, int]) -> tuple[Any, Any]:
    def number(leaf: Any) -> Any:
        return _Held(numbers[id(leaf)]) if isinstance(leaf, torch.Tensor) else leaf

    return torch.utils._pytree.tree_map(number, (args, kwargs))
