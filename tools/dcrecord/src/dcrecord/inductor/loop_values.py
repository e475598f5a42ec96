"""Bodies of Inductor's loops, run for all elements of a loop at the same time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import sympy
import torch
from torch import Tensor
from torch._inductor.ops_handler import DefaultHandler
from torch._inductor.virtualized import V

from dcrecord.inductor.index_values import affine, index_tensor

_NARROW = (torch.bfloat16, torch.float16)


class NoStandIn(Exception):
    """Says why a kernel has no stand-in."""


@dataclass(frozen=True)
class Place:
    """Elements of a buffer by extents, strides and the first one."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def of(self, memory: Tensor) -> Tensor:
        """The offset counts from the first element that `memory` shows, wherever that lies in its storage."""
        if self.offset:
            memory = _flat(memory)[self.offset :]
        return torch.as_strided(memory, self.shape, self.strides)


@dataclass(frozen=True)
class _Store:
    """`where`: a place, or a number of an element for each of `value`. `adds`: to what is there."""

    where: Place | Tensor
    value: Tensor
    adds: bool = False

    def into(self, memory: Tensor) -> None:
        if isinstance(self.where, Place):
            self.where.of(memory).copy_(self.value)
        else:
            index, value = torch.broadcast_tensors(self.where, self.value.to(memory.dtype))
            torch.ops.aten.put_(_flat(memory), index, value, self.adds)


class LoopValues(DefaultHandler):
    """Inductor's `ops` over whole loops.

    held     by name of a buffer: the launch's argument that points to it
    reused   by name of a buffer: the one that has taken over its memory

    What is stored goes to memory at the end: a kernel reads each element before it writes in its place, and keeps what it
    has stored as it was computed, not as the buffer rounds it.
    """

    def __init__(self, held: dict[str | None, Tensor | None], reused: dict[str, str]) -> None:
        self.held = held
        self.reused = reused
        self.stores: dict[str, list[_Store]] = {}
        self._temporaries: dict[str, Tensor] = {}
        self._constants: dict[tuple[Any, torch.dtype], Tensor] = {}

    def run(self, body: Any) -> None:
        """One loop."""
        if body is None:
            raise NoStandIn("it has a part that is no loop")
        outer, inner = (tuple(map(int, sizes)) for sizes in body.sizes)
        self.shape = outer + inner
        self.outer = len(outer)
        self.variables = [sympy.Symbol(f"loop{each}", integer=True, nonnegative=True) for each in range(len(self.shape))]
        self.indirect: dict[sympy.Symbol, Tensor] = {}
        self._loaded: dict[Any, Tensor] = {}
        self._masks = 0
        with V.set_ops_handler(self):
            body(self.variables[: self.outer], self.variables[self.outer :])

    def finish(self) -> None:
        """Writes what was stored."""
        for name, stores in self.stores.items():
            memory = self._memory(name)
            for store in stores if memory is not None else ():
                store.into(memory)

    # Memory.

    def load(self, name: str, index: sympy.Expr) -> Tensor:
        real, key = self._real(name), (self._real(name), index, self._masks > 0)
        if real in self.stores:
            return self._load_stored(real, index)
        if key not in self._loaded:
            memory = self._memory(real)
            if memory is None:
                raise NoStandIn(f"it reads {name}, which is none of its arguments")
            self._loaded[key] = _wide(self._read(memory, index))
        return self._loaded[key]

    def _load_stored(self, name: str, index: sympy.Expr) -> Tensor:
        stores = self.stores[name]
        place = self._place(index)
        if len(stores) == 1 and place is not None and stores[0].where == place:
            return stores[0].value
        if any(store.adds for store in stores):
            raise NoStandIn(f"it reads {name} after adding to it")
        if name not in self._temporaries:
            memory = self._memory(name)
            size = extent_of(name)
            value = stores[0].value
            self._temporaries[name] = torch.empty(size, dtype=value.dtype, device="meta") if memory is None else (
                torch.as_strided(memory, (size,), (1,)).to(value.dtype, copy=True)
            )
            for store in stores:
                store.into(self._temporaries[name])
        return self._read(self._temporaries[name], index)

    def _read(self, memory: Tensor, index: sympy.Expr) -> Tensor:
        place = None if self._masks else self._place(index)
        if place is not None:
            return place.of(memory)
        where = self._index(index)
        if self._masks:  # what lies outside is not used, and must not be read
            where = where.clamp(0, memory.numel() - 1)
        return torch.take(_flat(memory), where)

    def store(self, name: str, index: sympy.Expr, value: Tensor, mode: str | None = None) -> None:
        if mode not in (None, "atomic_add"):
            raise NoStandIn(f"it stores with mode {mode}")
        place = self._place(index) if mode is None else None
        value = self._full(value)
        if place is None:
            where: Place | Tensor = self._index(index)
        else:
            # All elements of a dimension that does not count are the same.
            for axis, stride in enumerate(place.strides):
                if stride == 0 and place.shape[axis] > 1:
                    value = value.narrow(axis, 0, 1)
            shape = tuple(1 if stride == 0 else size for size, stride in zip(place.shape, place.strides))
            where = Place(shape, place.strides, place.offset)
        if value._is_view():  # of memory that may be written before it is read
            value = value.clone()
        real = self._real(name)
        self.stores.setdefault(real, []).append(_Store(where, value, mode is not None))
        self._temporaries.pop(real, None)

    def store_reduction(self, name: str, index: sympy.Expr, value: Tensor) -> None:
        shape, self.shape = self.shape, self.shape[: self.outer] + (1,) * (len(self.shape) - self.outer)
        self.store(name, index, value)
        self.shape = shape

    def _real(self, name: str) -> str:
        return V.graph.scheduler.mutation_real_name.get(name, name)

    def _memory(self, name: str) -> Tensor | None:
        while name not in self.held and name in self.reused:
            name = self.reused[name]
        return self.held.get(name)

    def _place(self, index: sympy.Expr) -> Place | None:
        found = affine(index, self.variables)
        if found is None:
            return None
        offset, strides = found
        return Place(self.shape, strides, offset) if offset >= 0 and min(strides, default=0) >= 0 else None

    def _index(self, index: sympy.Expr) -> Tensor:
        return index_tensor(index, dict(zip(self.variables, range(len(self.shape)))), self.shape, self.indirect)

    # Numbers.

    def constant(self, value: Any, dtype: torch.dtype) -> Tensor:
        dtype = _compute_type(dtype)
        if (value, dtype) not in self._constants:
            self._constants[value, dtype] = torch.full((), value, dtype=dtype, device="meta")
        return self._constants[value, dtype]

    def index_expr(self, expr: sympy.Expr, dtype: torch.dtype) -> Tensor:
        return self._index(sympy.sympify(expr)).to(dtype)

    def indirect_indexing(self, index: Tensor, size: Any, check: bool = True, wrap_neg: bool = True) -> sympy.Symbol:
        if wrap_neg:
            index = torch.where(index < 0, index + int(size), index)
        symbol = sympy.Symbol(f"data{len(self.indirect)}", integer=True)
        self.indirect[symbol] = index.to(torch.int64)
        return symbol

    def masked(self, mask: Tensor, body: Callable[[], Tensor], other: Any) -> Tensor:
        self._masks += 1
        value = body()
        self._masks -= 1
        return torch.where(mask, value, self.constant(other, value.dtype))

    def to_dtype(self, x: Tensor, dtype: torch.dtype, src_dtype: Any = None, use_compute_types: bool = True) -> Tensor:
        return x.to(_compute_type(dtype) if use_compute_types else dtype)

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Any:
        axes = list(range(self.outer, len(self.shape)))
        if kind == "welford_combine":
            return self._combine_welford(*map(self._full, value), axes)
        value = self._full(value)
        if kind == "welford_reduce":
            mean = value.mean(axes, keepdim=True)
            weight = self.constant(float(prod(self.shape[self.outer :])), mean.dtype)
            return mean, (value - mean).square().sum(axes, keepdim=True), weight.expand(mean.shape)
        if kind == "online_softmax_reduce":
            top = value.amax(axes, keepdim=True)
            return top, (value - top).exp().sum(axes, keepdim=True)
        if kind in ("sum", "any"):
            result = value.sum(axes, keepdim=True) if kind == "sum" else value.to(torch.bool).any(axes, keepdim=True)
        elif kind in ("max", "min"):
            result = (value.amax if kind == "max" else value.amin)(axes, keepdim=True)
        elif kind in ("argmax", "argmin"):
            flat = value.flatten(self.outer)
            found = (flat.argmax if kind == "argmax" else flat.argmin)(self.outer, keepdim=True)
            result = found.reshape(self.shape[: self.outer] + (1,) * len(axes))
        else:
            raise NoStandIn(f"it reduces by {kind}")
        return result.to(_compute_type(dtype))

    def _combine_welford(self, mean: Tensor, squares: Tensor, weight: Tensor, axes: list[int]) -> tuple[Tensor, ...]:
        total = weight.sum(axes, keepdim=True)
        middle = (mean * weight).sum(axes, keepdim=True) / total
        return middle, (squares + weight * (mean - middle).square()).sum(axes, keepdim=True), total

    def _full(self, value: Tensor) -> Tensor:
        return value if value.shape == self.shape else value.expand(self.shape)

    def _default(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name not in _OPERATORS:
            raise NoStandIn(f"it computes {name}")
        return _OPERATORS[name](*args, **kwargs)


def extent_of(name: str) -> int:
    """How many elements a buffer reaches over."""
    buffer = V.graph.get_buffer(name)
    return 1 + sum((int(size) - 1) * int(stride) for size, stride in zip(buffer.get_size(), buffer.get_stride()))


def _flat(memory: Tensor) -> Tensor:
    """An argument may have any shape; what is known of it is how far its elements reach."""
    return torch.as_strided(memory, (memory.numel(),), (1,))


def _compute_type(dtype: torch.dtype) -> torch.dtype:
    """Kernels compute in float32 what memory has in fewer bits."""
    return torch.float32 if dtype in _NARROW else dtype


def _wide(value: Tensor) -> Tensor:
    return value.to(_compute_type(value.dtype))


def _nothing(*_: Any, **__: Any) -> None:
    return None


_SAME = (
    "abs exp exp2 expm1 sqrt relu minimum maximum cos sin lgamma erf cosh sinh acos acosh asin asinh atan2 atan atanh copysign "
    "erfc erfinv hypot log10 log2 logical_and logical_not logical_or logical_xor bitwise_and bitwise_not bitwise_or "
    "bitwise_xor bitwise_left_shift bitwise_right_shift rsqrt log1p tan tanh sigmoid signbit fmod log isinf isnan round floor "
    "sign trunc ceil neg reciprocal eq ne lt gt le ge add sub mul pow remainder square where"
).split()
_OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in _SAME},
    "identity": lambda x: x,
    "and_": torch.bitwise_and,
    "or_": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
    "truediv": torch.true_divide,
    "int_truediv": torch.true_divide,
    "floordiv": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "truncdiv": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "mod": torch.fmod,
    "fma": lambda a, b, c: a * b + c,
    "mul_rn": torch.mul,
    "trunc_to_int": lambda x, dtype: torch.trunc(x).to(dtype),
    "ceil_to_int": lambda x, dtype: torch.ceil(x).to(dtype),
    "floor_to_int": lambda x, dtype: torch.floor(x).to(dtype),
    "round_to_int": lambda x, dtype: torch.round(x).to(dtype),
    "check_bounds": _nothing,
    "device_assert_async": _nothing,
    "output": _nothing,
}
