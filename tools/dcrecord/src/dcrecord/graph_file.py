"""Writing a document: the same document gives the same bytes, and a file is whole or absent."""

from __future__ import annotations

import json
import lzma
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from dcrecord.errors import RecorderError

FORMAT = "dc-graph/1"
# Name of the graph's file in a workload's folder.
GRAPH_FILE = "graph.json.xz"
# The same of its compiled forms, by the stages that run them.
COMPILED_FILES = {"zero3": "graph-inductor-zero3.json.xz", "zero12": "graph-inductor-zero12.json.xz"}
# The same of the form whose layers are compiled each on its own.
LAYERS_FILES = {"layers": "graph-inductor-layers.json.xz"}


def files_of(backend: str) -> dict[str, str]:
    """By name of a compiled form, the file that a recording for this backend writes."""
    return {"inductor": COMPILED_FILES, "inductor-layers": LAYERS_FILES}.get(backend, {})


def to_bytes(document: dict[str, Any], compressed: bool, indented: bool = False) -> bytes:
    """JSON, keys in the document's order; compact, or one line for each short list; compressed by xz."""
    if indented:
        text = (_indented(document) + "\n").encode("ascii")
    else:
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")
    return lzma.compress(text, preset=6 | lzma.PRESET_EXTREME) if compressed else text


def _indented(node: Any, depth: int = 0) -> str:
    """Containers of containers take a line for each element; others are one line."""
    elements = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    if not any(isinstance(element, (dict, list)) for element in elements) or depth >= 4:
        return json.dumps(node, ensure_ascii=True, allow_nan=False)
    if isinstance(node, dict):
        parts = [f"{json.dumps(key)}: {_indented(value, depth + 1)}" for key, value in node.items()]
    else:
        parts = [_indented(value, depth + 1) for value in node]
    opened, closed = "{}" if isinstance(node, dict) else "[]"
    margin = " " * (depth + 1)
    return f"{opened}\n" + ",\n".join(margin + part for part in parts) + f"\n{' ' * depth}{closed}"


def check_folder(folder: Path) -> None:
    """Throws OSError when nothing can be written into `folder`, before a long computation finds that out."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is not a folder")
    if not os.access(existing, os.W_OK):
        raise PermissionError(f"{existing} cannot be written to")


def write_whole(path: Path, data: bytes) -> None:
    """Writes beside `path` and renames, so that nobody ever reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_document(path: Path) -> dict[str, Any]:
    """A document written by this module, compressed or not."""
    return parse_document(read_text(path), path)


def read_text(path: Path) -> bytes:
    """The uncompressed bytes of a file, whose hash tells it from others."""
    data = path.read_bytes()
    try:
        return lzma.decompress(data) if path.name.endswith(".xz") else data
    except lzma.LZMAError as error:
        raise RecorderError(f"{path} is no whole xz file: expected a file that dcrecord wrote ({error})") from error


def graph_hash(text: bytes) -> str:
    """Names a graph in profiles and results: FNV-1a of its file's uncompressed bytes but `hidden_size`, of which no op
    depends."""
    import numpy as np

    from dcrecord.seeded import fnv1a_of_bytes

    hashed = re.sub(rb',\s*"hidden_size"\s*:\s*[0-9]+', b"", text, count=1)
    return f"{fnv1a_of_bytes(np.frombuffer(hashed, dtype=np.uint8)):016x}"


def parse_document(text: bytes, path: Path) -> dict[str, Any]:
    """The document that a file at `path` holds."""
    try:
        return json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecorderError(f"{path} is no JSON file: expected a graph file that dcrecord wrote ({error})") from error
