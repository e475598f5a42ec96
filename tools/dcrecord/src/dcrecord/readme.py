"""The README.md of a workload's folder."""

from __future__ import annotations

from math import prod
from typing import Any


def readme_of(document: dict[str, Any]) -> str:
    """What the workload is, and the command that makes it again."""
    rows = "\n".join(f"| {name} | {text} |" for name, text in _rows(document))
    return (
        f"# {document['name']}\n\n"
        "One training micro-step (forward and backward), recorded without a GPU and without weights.\n"
        "`graph.json.xz` is described in docs/reference/formats.md (dc-graph/1); this command makes it again, byte for byte:\n\n"
        f"```\n{document['recorder']['command']}\n```\n\n"
        f"| | |\n| --- | --- |\n{rows}\n"
    )


def _rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    options, recorder = document["options"], document["recorder"]
    sizes = [prod(document["values"][entry["value"]]["shape"]) for entry in document["params"]]
    trained = sum(size for size, entry in zip(sizes, document["params"]) if entry["requires_grad"])
    return [
        ("tokens of a micro-step", f"{document['tokens']:,}{_shape_of_batch(options)}"),
        ("parameters", f"{sum(sizes):,} in {len(sizes):,} tensors, {trained:,} of them trained"),
        ("dtype", options["dtype"] + (f", autocast to {options['autocast']}" if options["autocast"] else "")),
        ("attention kernel, partitioner", f"{options['attention']}, {options['partitioner']}"),
        ("activation checkpointing", _checkpointing(options["activation_checkpointing"])),
        ("graphs", counts_of(document)),
        ("saved for the backward", f"{_saved_bytes(document):,} bytes"),
        ("held until the next step", ", ".join(options["hold"]) or "nothing beside the loss"),
        ("recorded with", ", ".join(f"{name} {recorder[name]}" for name in ("dcrecord", "torch", "transformers"))),
    ]


def counts_of(document: dict[str, Any]) -> str:
    """`1,167 forward and 2,434 backward ops`."""
    return " and ".join(f"{len(graph['ops']):,} {graph['direction']}" for graph in document["graphs"]) + " ops"


def _shape_of_batch(options: dict[str, Any]) -> str:
    """` (batch 2, sequence 16)`; a workload of a function may have neither."""
    named = [f"{name} {options[name]}" for name in ("batch", "sequence") if options[name] is not None]
    return f" ({', '.join(named)})" if named else ""


def _checkpointing(option: bool | list[str]) -> str:
    if isinstance(option, list):
        return ", ".join(f"`{pattern}`" for pattern in option)
    return "each block" if option else "none"


def _saved_bytes(document: dict[str, Any]) -> int:
    """Bytes of the storages that the forward leaves for the backward."""
    saved = {
        document["values"][output["value"]]["storage"]
        for graph in document["graphs"]
        for output in graph["outputs"]
        if output["kind"] == "saved"
    }
    return sum(document["storages"][storage] for storage in saved)
