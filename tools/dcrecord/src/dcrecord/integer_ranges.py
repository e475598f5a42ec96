"""Integers of inputs against what takes them: rows of a table, classes of a loss.

On a GPU an index outside ends the process, and says neither which input nor why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dcrecord.errors import RecorderError

# By operator: which argument is indexed, which holds the indices, and what an index names.
_INDEXED = {
    "aten::embedding": (0, 1, "rows of a table"),
    "aten::nll_loss_forward": (0, 1, "classes of a loss"),
    "aten::nll_loss2d_forward": (0, 1, "classes of a loss"),
}


def check_integer_ranges(document: dict[str, Any]) -> None:
    """Throws RecorderError for inputs whose integers may lie outside of what an operator reads with them."""
    faults = list(dict.fromkeys(_faults(document)))
    if faults:
        raise RecorderError("\n".join(faults))


def _faults(document: dict[str, Any]) -> Iterator[str]:
    values = document["values"]
    inputs = {
        values[entry["value"]]["storage"]: entry for entry in document["inputs"] if "vocabulary" in entry["fill"]
    }
    for op in (op for graph in document["graphs"] for op in graph["ops"]):
        operator = document["schemas"][op["schema"]].partition("(")[0]
        if operator not in _INDEXED:
            continue
        source, indices, names = _INDEXED[operator]
        entry = inputs.get(values[op["args"][indices]["v"]]["storage"])
        shape = values[op["args"][source]["v"]]["shape"]
        most = shape[0] if operator == "aten::embedding" or len(shape) == 1 else shape[1]
        if entry is not None and entry["fill"]["vocabulary"] > most:
            name, below = entry["name"], entry["fill"]["vocabulary"]
            yield (
                f"input '{name}': its integers, below {below:,}, are {names}, of which there are {most:,}; "
                f"expected --vocabulary {name}={most}"
            )
