"""Reads an operator's schema string, without PyTorch: the tests' own idea of what it says."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """`SymInt[2] stride=1` -> name stride, type "SymInt", is_list; `Tensor(a!)? x` has aliases "a!"."""

    name: str
    type: str
    is_list: bool
    is_optional: bool
    aliases: str | None


@dataclass(frozen=True)
class Schema:
    """Operator name, arguments and returns."""

    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]


def parse_schema(text: str) -> Schema:
    """`aten::t(Tensor(a) self) -> Tensor(a)`."""
    head, _, returned = text.rpartition(" -> ")
    name, _, inside = head.partition("(")
    arguments = [_argument(part) for part in _split(inside.removesuffix(")")) if part != "*"]
    if returned.startswith("("):
        returned = returned[1:-1]
    return Schema(name, tuple(arguments), tuple(_argument(part) for part in _split(returned)))


def _split(text: str) -> list[str]:
    """Parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _argument(part: str) -> Argument:
    match = re.fullmatch(r"(\w+)(\(([^)]*)\))?(\?)?(\[\d*\])?(\?)?( (\w+)(=.*)?)?", part)
    assert match is not None, f"not understood: {part}"
    return Argument(match[8] or "", match[1], match[5] is not None, bool(match[4] or match[6]), match[3])
