"""Bytes that a kernel of Inductor's reads and writes, by buffer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import sympy
from torch._inductor.dependencies import MemoryDep, StarDep
from torch._inductor.utils import get_dtype_size
from torch._inductor.virtualized import V


def traffic_of(node: Any) -> tuple[dict[str, int], dict[str, int]]:
    """What a scheduler node reads and what it writes, by name of the buffer.

    A buffer counts at most once, and where an index is data, as many elements as are indexed. What is made and read in the
    same kernel is no read.
    """
    accesses = node.read_writes
    written = {_real_name(access.name) for access in accesses.writes}
    reads = _count(access for access in accesses.reads if _real_name(access.name) not in written)
    added = _count(access for access in accesses.writes if getattr(access, "mode", None) == "atomic_add")
    return {**reads, **added}, _count(accesses.writes)


def _real_name(name: str) -> str:
    return V.graph.scheduler.mutation_real_name.get(name, name)


def _count(accesses: Iterable[Any]) -> dict[str, int]:
    elements: dict[str, int] = defaultdict(int)
    for access in sorted(accesses, key=str):
        if isinstance(access, (MemoryDep, StarDep)):
            elements[_real_name(access.name)] += _elements(access)
    return {name: min(count, _numel(name)) * get_dtype_size(V.graph.get_dtype(name)) for name, count in elements.items()}


def _elements(access: MemoryDep | StarDep) -> int:
    if isinstance(access, StarDep):
        return _numel(_real_name(access.name))
    indexed_by_data = access.is_indirect()
    met = [size for name, size in zip(access.var_names, access.size) if indexed_by_data or name in access.index.free_symbols]
    return int(sympy.prod(met))


def _numel(name: str) -> int:
    return int(V.graph.get_numel(name))
