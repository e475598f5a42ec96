"""Inductor's index expressions over whole loops: places of elements in a buffer, or a tensor of their numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Identity, Max, Min, Mod, ModularIndexing, PythonMod, Where


def affine(index: sympy.Expr, variables: list[sympy.Symbol]) -> tuple[int, tuple[int, ...]] | None:
    """The number at the loop's begin and the steps by variable, where the index has no other parts."""
    index = sympy.expand(index)
    offset = index.subs(dict.fromkeys(variables, 0))
    steps = [index.coeff(variable, 1) for variable in variables]
    rest = sympy.expand(index - offset - sum(step * variable for step, variable in zip(steps, variables)))
    if rest != 0 or not all(isinstance(number, sympy.Integer) for number in (offset, *steps)):
        return None
    return int(offset), tuple(map(int, steps))


def index_tensor(
    index: sympy.Expr, axis_of: dict[sympy.Symbol, int], shape: tuple[int, ...], indirect: dict[sympy.Symbol, Tensor]
) -> Tensor:
    """Numbers of elements, one for each of the loop.

    axis_of    by variable of the loop: its dimension in `shape`
    indirect   by variable: numbers that are data
    """

    def value(expr: sympy.Expr) -> Tensor | int:
        if isinstance(expr, sympy.Integer):
            return int(expr)
        if expr in axis_of:
            axis = axis_of[expr]
            steps = [0] * len(shape)
            steps[axis] = 1
            return torch.as_strided(torch.arange(shape[axis], device="meta"), shape, steps)
        if expr in indirect:
            return indirect[expr]
        for kind, compute in _FUNCTIONS.items():
            if isinstance(expr, kind):
                return compute(*map(value, expr.args))
        raise NotImplementedError(f"an index has {type(expr).__name__}")

    result = value(index)
    return result if isinstance(result, Tensor) else torch.full(shape, result, dtype=torch.int64, device="meta")


def _floor(a: Any, b: Any) -> Any:
    return a // b if isinstance(a, int) else torch.div(a, b, rounding_mode="floor")


def _remainder(a: Any, b: Any) -> Any:
    return a % b


def _power(base: Any, exponent: int) -> Any:
    return reduce(lambda a, b: a * b, [base] * exponent)


def _select(condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool):
        return a if condition else b
    return torch.where(condition, _tensor(a), _tensor(b))


def _extreme(of_tensors: Any, of_numbers: Any, each: tuple[Any, ...]) -> Any:
    if all(isinstance(one, int) for one in each):
        return of_numbers(each)
    return reduce(of_tensors, map(_tensor, each))


def _tensor(number: Any) -> Tensor:
    return torch.full((), number, device="meta") if isinstance(number, int) else number


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.Add: lambda *terms: reduce(lambda a, b: a + b, terms),
    sympy.Mul: lambda *factors: reduce(lambda a, b: a * b, factors),
    sympy.Pow: _power,
    FloorDiv: _floor,
    CleanDiv: _floor,
    ModularIndexing: lambda a, divisor, modulus: _remainder(_floor(a, divisor), modulus),
    (PythonMod, Mod): _remainder,
    Identity: lambda a: a,
    Where: _select,
    (Min, sympy.Min): lambda *each: _extreme(torch.minimum, min, each),
    (Max, sympy.Max): lambda *each: _extreme(torch.maximum, max, each),
    sympy.Eq: operator.eq,
    sympy.Ne: operator.ne,
    sympy.LessThan: operator.le,
    sympy.GreaterThan: operator.ge,
    sympy.StrictLessThan: operator.lt,
    sympy.StrictGreaterThan: operator.gt,
}
