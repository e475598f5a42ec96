"""A Triton kernel that Inductor wrote, as an entry of a document."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from dcrecord.errors import RecorderError

HEURISTICS = ("pointwise", "reduction", "persistent_reduction")
# What a source says that depends on the machine that wrote it.
_OF_THE_MACHINE = re.compile(r"'backend_hash': '[0-9A-F]+', ")


def source_of(definition: str, name: str) -> str:
    """The Python module that defines the kernel, called `kernel` in place of the name that Inductor counted up."""
    found = re.fullmatch(r"async_compile\.triton\('[^']*', '''\n?(.*)''', device_str='cuda'\)", definition.strip(), re.S)
    if found is None:
        raise RecorderError(f"Inductor's {name} is no Triton kernel for a GPU: {definition[:60]!r}")
    return _OF_THE_MACHINE.sub("", found[1]).replace(name, "kernel")


def describe_kernel(name: str, source: str, signature: dict[str, str], facts: dict[str, Any]) -> dict[str, Any]:
    """What the document says of a kernel.

    signature   types of the launch's arguments by name, in order
    facts       Inductor's own (`inductor_meta`)
    """
    found = re.search(r"^@triton_heuristics\.(\w+)\(", source, re.M)
    if found is None or found[1] not in HEURISTICS:
        raise RecorderError(f"Inductor's kernel {name} is {found[1] if found else 'unknown'}: expected {', '.join(HEURISTICS)}")
    return {
        "name": name,
        "hash": hashlib.sha256(source.encode()).hexdigest()[:16],
        "kind": found[1],
        "signature": [[key, kind] for key, kind in signature.items() if key not in _block_sizes(signature)],
        "grid": facts["grid_type"],
        "loads": source.count("tl.load("),
        "stores": source.count("tl.store(") + source.count("tl.atomic_add("),
        "reductions": facts["num_reduction"],
        "passes": _passes(source, signature),
        "configs": _candidates(source),
        "source": source,
    }


def _block_sizes(signature: dict[str, str]) -> set[str]:
    """Arguments that a configuration decides."""
    return {key for key in signature if re.fullmatch(r"[XYZR]\d?_?BLOCK(_SUB)?|RSPLIT\w*|NUM_STAGES", key)}


def _passes(source: str, signature: dict[str, str]) -> dict[str, int]:
    """By argument: in how many loops over the reduced elements it is read, where that is more than one."""
    loops = re.split(r"\n    for r\d?_?offset in ", source)[1:]
    bodies = [re.match(r"[^\n]*\n((?: {8}[^\n]*\n)*)", loop)[1] for loop in loops]
    counts = {key: sum(f"tl.load({key} " in body for body in bodies) for key in signature}
    return {key: count for key, count in counts.items() if count > 1}


def _candidates(source: str) -> list[dict[str, int]]:
    """The configurations among which the first launch on a GPU chooses, as Inductor's heuristics list them."""
    from torch._inductor.codecache import PyCodeCache

    tuner = PyCodeCache.load(source).kernel
    return [config_of(config) for config in tuner.configs]


def config_of(config: Any) -> dict[str, int]:
    """A configuration of Triton's as a document has it."""
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
