"""Numbers that Python and C++, CPU and GPU make from a seed with the same bits (docs/reference/formats.md, dc-reference/1)."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_FNV_PRIME_LOW = np.uint8(_FNV_PRIME & 0xFF)
_64_BITS = 2**64 - 1
# Bytes that are hashed at once; a few arrays of that many elements fit the cache.
_BLOCK_BYTES = 2**15

# Half the width of the uniform distributions of inputs (variance 1) and of weights (deviation 0.02).
INPUT_SCALE = np.float32(sqrt(3.0))
WEIGHT_SCALE = np.float32(sqrt(3.0) * 0.02)


def fnv1a(text: str) -> int:
    """64-bit FNV-1a of the UTF-8 bytes of a name."""
    state = _FNV_OFFSET
    for byte in text.encode():
        state = (state ^ byte) * _FNV_PRIME & _64_BITS
    return state


def splitmix64(state: int, start: int, count: int) -> Words:
    """Outputs number start, start + 1, ..., start + count - 1 of the generator that begins at `state`.

    Source: Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014; here by index.
    """
    with np.errstate(over="ignore"):
        index = np.arange(start + 1, start + count + 1, dtype=np.uint64)
        mixed = np.uint64(state & _64_BITS) + index * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def uniform(words: Words, scale: np.float32) -> NDArray[np.float32]:
    """(2 * (word >> 40) / 2^24 - 1) * scale; all but the last product is exact in float32."""
    steps = (words >> np.uint64(40)).astype(np.float32)
    return (steps * np.float32(2.0**-23) - np.float32(1.0)) * scale


def fnv1a_of_bytes(data: NDArray[np.uint8]) -> int:
    """64-bit FNV-1a of many bytes, the same as fnv1a, without a loop over them."""
    powers = _powers_of_prime(_BLOCK_BYTES)
    state = _FNV_OFFSET
    for start in range(0, data.size, _BLOCK_BYTES):
        state = _hash_block(state, data[start : start + _BLOCK_BYTES], powers)
    return state


def _powers_of_prime(count: int) -> Words:
    """prime^0 to prime^count, modulo 2^64."""
    powers = np.full(count + 1, _FNV_PRIME, dtype=np.uint64)
    powers[0] = 1
    with np.errstate(over="ignore"):
        return np.multiply.accumulate(powers)


def _hash_block(state: int, block: NDArray[np.uint8], powers: Words) -> int:
    """Goes on from `state`.

    A step is state = (state ^ byte) * prime. The exclusive or changes the low byte only: it adds (low ^ byte) - low. With
    the low bytes known, the steps are a linear recurrence, whose solution is a sum of products with powers of the prime.
    """
    low = _low_bytes(state & 0xFF, block)
    added = (low ^ block).astype(np.int64) - low.astype(np.int64)
    count = block.size
    with np.errstate(over="ignore"):
        total = np.sum(added.view(np.uint64) * powers[count:0:-1], dtype=np.uint64)
        return int(total + np.uint64(state) * powers[count])


def _low_bytes(first: int, block: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The state's low byte before each step.

    Bit j of a product with an odd number is bit j of the factor, changed or not by what the factor's lower bits say. So
    with the bits below j known for all steps, bit j is a running exclusive or.
    """
    low = np.zeros(block.size, dtype=np.uint8)
    for bit in range(8):
        below = np.uint8((1 << bit) - 1)
        flips = (((low ^ block) & below) * _FNV_PRIME_LOW) ^ block
        flips &= np.uint8(1 << bit)
        low |= _xor_of_all_before(flips, first >> bit & 1) << np.uint8(bit)
    return low


def _xor_of_all_before(flips: NDArray[np.uint8], first: int) -> NDArray[np.uint8]:
    """For each place: `first` and all earlier `flips` that are not 0, exclusive-ored. 64 places are one word."""
    packed = np.packbits(flips, bitorder="little")
    words = np.zeros(-(-packed.size // 8), dtype=np.uint64)
    words.view(np.uint8)[: packed.size] = packed
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    carried = np.bitwise_xor.accumulate(words >> np.uint64(63))
    words[1:] ^= np.uint64(0) - carried[:-1]
    bits = np.unpackbits(words.view(np.uint8), count=flips.size, bitorder="little")
    before = np.empty_like(bits)
    before[0] = first
    before[1:] = bits[:-1] ^ np.uint8(first)
    return before
