"""Operators whose tensors have dtypes that a GPU's kernels do not take, together or at all.

Fake tensors check shapes, and dtypes of few operators only. What kernels take is known of most operators from a GPU
(cuda_dtypes.json, which tests/recorder/sweep makes); of others it is asked of PyTorch's CPU kernels, on small tensors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from dcrecord.arguments import plain_name
from dcrecord.capture import Captured
from dcrecord.composite_dtypes import batch_norm_takes
from dcrecord.errors import RecorderError
from dcrecord.module_paths import ModulePaths, where_is

LETTERS = {
    torch.float32: "f",
    torch.bfloat16: "b",
    torch.float16: "h",
    torch.float64: "d",
    torch.int64: "l",
    torch.int32: "i",
    torch.uint8: "u",
    torch.bool: "?",
}

_BATCH_NORMS = (
    torch.ops.aten._native_batch_norm_legit_functional.default,
    torch.ops.aten._native_batch_norm_legit.default,
)

# Above this length a dimension is cut for the question to the CPU.
_LONGEST = 8


def check_dtypes(captured: Captured, paths: ModulePaths) -> None:
    """Throws RecorderError where eager PyTorch on a GPU raises because of its tensors' dtypes."""
    found = list(dict.fromkeys(_problems(captured, paths)))
    if found:
        more = f" (and {len(found) - 1} more such operations)" if len(found) > 1 else ""
        raise RecorderError(found[0] + more)


def _problems(captured: Captured, paths: ModulePaths) -> Iterator[str]:
    known: dict[tuple[str, str], bool] = {}
    for graph in (captured.forward, captured.backward):
        ask_cpu = graph is captured.forward  # a derivative's dtypes are PyTorch's own, and a GPU's kernels have others
        for node in graph.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            tensors = _tensors_of(node)
            key = (node.target.name(), signature(tensors))
            if key not in known:
                known[key] = _runs(node, key[1], ask_cpu)
            if not known[key]:
                yield _sentence(node, tensors, paths)


def signature(tensors: list[Tensor]) -> str:
    """A letter for each tensor's dtype; `0` behind one without dimensions, `_` for a dtype without a letter."""
    return "".join(LETTERS.get(each.dtype, "_") + ("0" if each.dim() == 0 else "") for each in tensors)


def _tensors_of(node: Node) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(_values_of(node)) if isinstance(leaf, Tensor)]


def _values_of(node: Node) -> Any:
    """The arguments of the node's operator, as the trace had them."""
    return tree_map(lambda leaf: leaf.meta.get("val") if isinstance(leaf, Node) else leaf, (node.args, node.kwargs))


def _runs(node: Node, dtypes: str, ask_cpu: bool) -> bool:
    if node.target in _BATCH_NORMS:
        input, *others = _tensors_of(node)
        return batch_norm_takes(input, others)
    if _names_dtype(node) or _is_maximum_of_bags(node):
        return not _is_maximum_of_bags(node)
    if "_scaled_dot_product_" in node.target.name():
        return True  # which heads a kernel takes depends on their dtype, and is asked where the kernel is chosen
    rules = _measured().get(node.target.name(), {})
    if dtypes in rules:
        return rules[dtypes]
    return not ask_cpu or len(set(dtypes) - {"0"}) < 2 or _runs_on_cpu(node)


def _runs_with_int64(node: Node, tensors: list[Tensor]) -> bool:
    """Whether the 32 bits of integers are the problem, as far as a GPU was asked."""
    dtypes = signature(tensors)
    rules = _measured().get(node.target.name(), {})
    return "i" in dtypes and rules.get(dtypes.replace("i", "l"), True) and not _is_maximum_of_bags(node)


def _names_dtype(node: Node) -> bool:
    """Whether a dtype among the arguments decides, too."""
    return any(isinstance(leaf, torch.dtype) for leaf in tree_leaves((node.args, node.kwargs)))


def _is_maximum_of_bags(node: Node) -> bool:
    """The one mode of embedding_bag without a backward in bfloat16 (aten/src/ATen/native/cuda/EmbeddingBag.cu)."""
    if node.target is not torch.ops.aten._embedding_bag_backward.default:
        return False
    mode = [argument.name for argument in node.target._schema.arguments].index("mode")
    return node.args[mode] == 2 and _tensors_of(node)[0].dtype is torch.bfloat16


@cache
def _measured() -> dict[str, dict[str, bool]]:
    """By operator and signature: whether it runs on a GPU."""
    table = json.loads(Path(__file__).with_name("cuda_dtypes.json").read_text(encoding="utf-8"))
    return {
        name: {dtypes: runs for key, runs in (("runs", True), ("raises", False)) for dtypes in rule.get(key, "").split()}
        for name, rule in table["operators"].items()
    }


def _runs_on_cpu(node: Node) -> bool:
    """Whether the operator runs on small CPU tensors of these dtypes, if it does on such of one dtype."""
    if node.target._schema.is_mutable:
        return True
    arguments = _values_of(node)
    try:
        with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad():
            args, kwargs = tree_map(lambda leaf: _small(leaf, one_dtype=True), arguments)
            node.target(*args, **kwargs)
            args, kwargs = tree_map(lambda leaf: _small(leaf, one_dtype=False), arguments)
    except Exception:
        return True  # it wants other shapes than these: nothing is known
    try:
        with unset_fake_temporarily(), _disable_current_modes(), torch.no_grad():
            node.target(*args, **kwargs)
    except Exception as error:
        return "not implemented for" in str(error)
    return True


def _small(leaf: Any, one_dtype: bool) -> Any:
    """A real tensor of ones or zeros, whose long dimensions are cut; a length that is a number among the arguments, too."""
    if isinstance(leaf, bool) or not isinstance(leaf, (int, Tensor)):
        return leaf
    if isinstance(leaf, int):
        return _cut(leaf)
    shape = [_cut(int(length)) for length in leaf.shape]
    if leaf.is_floating_point():
        return torch.ones(shape, dtype=torch.float32 if one_dtype else leaf.dtype)
    whole = torch.int64 if one_dtype and leaf.dtype is not torch.bool else leaf.dtype
    return torch.zeros(shape, dtype=whole)


def _cut(length: int) -> int:
    return length if length <= _LONGEST else _LONGEST


def _sentence(node: Node, tensors: list[Tensor], paths: ModulePaths) -> str:
    names = [plain_name(each.dtype) for each in tensors]
    floats = {each.dtype for each in tensors if each.is_floating_point()}
    if len(floats) > 1:
        expected = "one dtype for all floats: a cast (.to()), or --autocast"
    else:
        expected = "int64 in place of int32" if _runs_with_int64(node, tensors) else "another --dtype"
    return (
        f"{node.target.name()} does not take {', '.join(names)} on a GPU; expected {expected}{where_is(node, paths)}"
    )
