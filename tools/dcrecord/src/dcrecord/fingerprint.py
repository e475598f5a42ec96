"""A few numbers that stand for a gradient, so that two gradients can be compared without keeping either."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcrecord.seeded import fnv1a, fnv1a_of_bytes, splitmix64

PROJECTIONS = 16
# Elements that are projected at once; their signs fit the cache of a core.
_BLOCK_ELEMENTS = 2**12


@dataclass(frozen=True)
class Fingerprint:
    """Norm, hash and projections of a tensor of float32 elements in row-major order.

    norm          Euclidean, added up in float64
    hash          64-bit FNV-1a of the elements' little-endian bytes
    projections   sums of the elements, each with one of 16 seeded signs, added up in float64
    """

    norm: float
    hash: int
    projections: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON numbers hold 53 bits, so the hash is 16 hexadecimal digits."""
        return {"norm": self.norm, "hash": f"{self.hash:016x}", "projections": list(self.projections)}


def fingerprint(elements: NDArray[np.float32], name: str, seed: int) -> Fingerprint:
    """Of the gradient of parameter `name`."""
    flat = np.ascontiguousarray(elements, dtype="<f4").reshape(-1)
    squares = 0.0
    projections = np.zeros(PROJECTIONS)
    for start in range(0, flat.size, _BLOCK_ELEMENTS):
        block = flat[start : start + _BLOCK_ELEMENTS].astype(np.float64)
        squares += float(block @ block)
        projections += block @ _signs(name, seed, start, block.size)
    return Fingerprint(sqrt(squares), fnv1a_of_bytes(flat.view(np.uint8)), tuple(map(float, projections)))


def _signs(name: str, seed: int, start: int, count: int) -> NDArray[np.float64]:
    """[count, 16] of +1 and -1: bit k of an element's random word gives its sign in projection k, 1 meaning minus."""
    words = splitmix64(seed ^ fnv1a(f"projections/{name}"), start, count).astype("<u8")
    low_bytes = words.view(np.uint8).reshape(count, 8)[:, : PROJECTIONS // 8]
    bits = np.unpackbits(low_bytes, axis=1, bitorder="little")
    return 1.0 - 2.0 * bits


def relative_error(one: Fingerprint, other: Fingerprint) -> float:
    """Estimate of |a - b| / |a|. A projection of a - b has mean square |a - b|^2; 16 of them estimate it to about 18 %."""
    squares = [(a - b) ** 2 for a, b in zip(one.projections, other.projections)]
    return sqrt(sum(squares) / PROJECTIONS) / one.norm if one.norm else sqrt(sum(squares) / PROJECTIONS)
