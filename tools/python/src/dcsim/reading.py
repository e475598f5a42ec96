"""Documents to dataclasses and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def read_document(kind: type[T], document: dict[str, Any]) -> T:
    """The dataclass that a document says; "format" is not a field. Keys that the class lacks are a TypeError."""
    hints = _hints(kind)
    fields = {
        key: _read(hints[key], value) if key in hints else value for key, value in document.items() if key != "format"
    }
    return kind(**fields)


def plain_document(value: Any) -> Any:
    """Dataclasses as dicts and tuples as lists. What a document may lack is left out where it is None."""
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain_document(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.default is not None or getattr(value, field.name) is not None
        }
    if isinstance(value, tuple):
        return [plain_document(each) for each in value]
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(hint: Any, value: Any) -> Any:
    """`value` as the type says that a field has."""
    if value is None:
        return None
    if typing.get_origin(hint) is types.UnionType:
        hint = next(each for each in typing.get_args(hint) if each is not types.NoneType)
    if dataclasses.is_dataclass(hint):
        return read_document(hint, value)
    if typing.get_origin(hint) is tuple:
        return tuple(_read(typing.get_args(hint)[0], each) for each in value)
    return value
