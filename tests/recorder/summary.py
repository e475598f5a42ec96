"""A graph document as lines of text, so that two recordings can be compared and their difference read."""

from __future__ import annotations

import json
from typing import Any


def summary(document: dict[str, Any]) -> list[str]:
    """Every op with its arguments, outputs and module, every input and output, in the document's order."""
    lines = [f"tokens {document['tokens']}"]
    lines += [f"param {entry['name']} {_value(document, entry['value'])}" for entry in document["params"]]
    lines += [f"buffer {entry['name']} {_value(document, entry['value'])} {entry['data']}" for entry in document["buffers"]]
    lines += [f"input {entry['name']} {_value(document, entry['value'])}" for entry in document["inputs"]]
    for graph in document["graphs"]:
        lines.append(graph["direction"])
        lines += [f"in {json.dumps(entry)}" for entry in graph["inputs"]]
        lines += [_op(document, op) for op in graph["ops"]]
        lines += [f"out {json.dumps(entry)}" for entry in graph["outputs"]]
    return lines


def _op(document: dict[str, Any], op: dict[str, Any]) -> str:
    outputs = ", ".join("-" if value is None else _value(document, value) for value in op["outputs"])
    module = document["modules"][op["module"]] or "root"
    marks = " recompute" if op.get("recompute") else ""
    return f"{document['schemas'][op['schema']]} {json.dumps(op['args'])} = {outputs} @ {module}{marks}"


def _value(document: dict[str, Any], value_id: int) -> str:
    value = document["values"][value_id]
    place = f"storage {value['storage']} of {document['storages'][value['storage']]} bytes + {value['offset']}"
    return f"{value_id}: {value['dtype']}{value['shape']} strides {value['strides']} {place}"
