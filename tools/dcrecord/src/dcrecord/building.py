"""Building a module without the memory for its weights, yet with the true contents of its buffers.

A recording needs shapes of parameters and contents of buffers. So the module is built once, with every
large tensor on the meta device (it has a shape and no memory) and every small one real; buffers are
small. Afterwards all parameters become fake tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_leaves, tree_map

from dcrecord.errors import RecorderError

# A tensor with this many elements or more gets no memory while a module is built: most matrices of weights.
LARGE_TENSOR_ELEMENTS = 2**21

# The same for tensors that are made with a content: weights are made empty, masks of ones. A causal mask of
# 4,096 words is below.
LARGE_FILLED_TENSOR_ELEMENTS = 2**25

_FILLING = {torch.ops.aten.ones, torch.ops.aten.zeros, torch.ops.aten.full}

_Built = TypeVar("_Built")

# Runs a function that builds a module, in a dtype; returns the module and the storages of unknown contents.
Builder = Callable[[Callable[[], Any], torch.dtype], tuple[Any, set[int]]]


def _is_meta(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_meta


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not leaf.is_meta


class LargeTensorsOnMeta(TorchDispatchMode):
    """Sends the creation of large tensors, and whatever is computed from them, to the meta device.

    `unknown` collects the storages of real tensors that were overwritten with data of a meta tensor:
    their contents are not what the module would have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.unknown: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if tree_any(_is_meta, (args, kwargs)):
            return self._on_meta(func, args, kwargs)
        if not tree_any(_is_real, (args, kwargs)) and "device" in kwargs and _creates_large(func, args):
            kwargs = {**kwargs, "device": torch.device("meta"), "pin_memory": None}
        return func(*args, **kwargs)

    def _on_meta(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func._schema.is_mutable and _is_real(args[0]):
            self.unknown.add(args[0].untyped_storage()._cdata)
            return args[0]
        to_meta = lambda leaf: leaf.to("meta") if _is_real(leaf) and leaf.dim() > 0 else leaf  # noqa: E731
        if "device" in kwargs:
            kwargs = {**kwargs, "device": torch.device("meta")}
        return func(*tree_map(to_meta, args), **tree_map(to_meta, kwargs))


def _creates_large(factory: Any, args: Any) -> bool:
    """Whether a factory's arguments ask for a large tensor: its first argument is the shape, where it has one."""
    least = LARGE_FILLED_TENSOR_ELEMENTS if factory.overloadpacket in _FILLING else LARGE_TENSOR_ELEMENTS
    shape = args[0] if args and isinstance(args[0], (list, tuple)) else ()
    elements = 1
    for length in shape:
        elements *= int(length)
    return elements >= least


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """What `torch.empty` and friends make inside; the way in which models are built in half precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def build_without_weights(build: Callable[[], _Built], dtype: torch.dtype) -> tuple[_Built, set[int]]:
    """Runs `build` with large tensors on the meta device.

    Returns what it returned, and the storages whose contents are unknown (see LargeTensorsOnMeta).
    """
    mode = LargeTensorsOnMeta()
    with default_dtype(dtype), mode, torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build(), mode.unknown


def build_with_weights(build: Callable[[], _Built], dtype: torch.dtype) -> tuple[_Built, set[int]]:
    """Runs `build` as anybody would, for a module that is to be run."""
    with default_dtype(dtype):
        return build(), set()


def adopt_tensors(module: nn.Module) -> None:
    """Makes buffers of tensors that modules hold as plain attributes, which is what training needs on the GPU, too."""
    for owner in module.modules():
        for name, tensor in [item for item in vars(owner).items() if isinstance(item[1], torch.Tensor)]:
            delattr(owner, name)
            owner.register_buffer(name, tensor, persistent=False)


def buffer_contents(module: nn.Module, unknown: set[int]) -> dict[str, torch.Tensor]:
    """Real copies of all buffers by name."""
    contents = {}
    for name, buffer in module.named_buffers():
        if buffer.is_meta or buffer.untyped_storage()._cdata in unknown:
            raise RecorderError(
                f"the contents of buffer '{name}' {list(buffer.shape)} are not known without the weights: expected "
                f"buffers below {LARGE_TENSOR_ELEMENTS} elements, or {LARGE_FILLED_TENSOR_ELEMENTS} made of ones, "
                "zeros or one number, that do not depend on parameters"
            )
        contents[name] = buffer.detach().cpu().clone()
    return contents


def parameter_names(module: nn.Module) -> dict[str, list[str]]:
    """First name of each parameter, in `named_parameters()` order, and the further names of tied ones."""
    names: dict[str, list[str]] = {}
    first_name: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if id(parameter) in first_name:
            names[first_name[id(parameter)]].append(name)
        else:
            first_name[id(parameter)] = name
            names[name] = []
    return names


def replace_parameters(module: nn.Module, replace: Callable[[nn.Parameter], nn.Parameter]) -> None:
    """Puts `replace(p)` where parameter p was, the same one at all places of a tied parameter."""
    replacements: dict[int, nn.Parameter] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in replacements:
                replacements[id(parameter)] = replace(parameter)
            owner._parameters[name] = replacements[id(parameter)]


def fake_parameter(parameter: nn.Parameter) -> nn.Parameter:
    """A parameter of the same shape on the CPU; under a FakeTensorMode it takes no memory."""
    empty = torch.empty_strided(parameter.shape, parameter.stride(), dtype=parameter.dtype, device="cpu")
    return nn.Parameter(empty, requires_grad=parameter.requires_grad)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """All tensors in nested containers, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
