"""Shapes, strides and storages of every tensor of a step, as they are on a GPU.

Forward and backward are run once more, node by node, on fake CUDA tensors (which need no driver), and
in one go: the backward gets the very tensors that the forward saved. So a value has one identity over the
whole step, aliases show as shared storages, and whatever depends on the device is CUDA's.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from dcrecord.capture import Captured
from dcrecord.cuda_operators import results_on_cuda
from dcrecord.errors import RecorderError
from dcrecord.module_paths import ModulePaths, where_is
from dcrecord.running_statistics import IN_PLACE_OPERATORS

DEVICE = torch.device("cuda", 0)

# Losses whose result keeps the bytes of the losses of all elements (aten/src/ATen/native/{BinaryOps,Loss}.cpp).
_REDUCED_IN_PLACE = (
    torch.ops.aten.mse_loss.default,
    torch.ops.aten.smooth_l1_loss.default,
    torch.ops.aten.soft_margin_loss.default,
)


@dataclass
class Replayed:
    """What every node of a graph holds: a fake tensor, a tuple or list of them, a number or None."""

    graph: GraphModule
    values: dict[Node, Any]

    def outputs(self) -> list[Any]:
        """The nodes that the graph returns, None where it returns nothing."""
        return list(self.graph.graph.output_node().args[0])

    def operators(self) -> Iterator[Node]:
        """The calls of operators, in order."""
        return (node for node in self.graph.graph.nodes if node.op == "call_function" and not is_selection(node))


def is_selection(node: Node) -> bool:
    """Whether the node picks one result of an operator that returns several."""
    return node.target is operator.getitem


def replay(captured: Captured, device: torch.device = DEVICE) -> tuple[Replayed, Replayed]:
    """Runs both graphs on fake tensors; removes dead nodes first.

    device   whose tensors: a graph traced for a CPU alone, with operators that CUDA lacks, runs there only
    """
    mode = FakeTensorMode()
    mode.cache_enabled = False
    shared: dict[str, Any] = {}
    paths = ModulePaths(captured.forward)
    with mode, torch.no_grad(), results_on_cuda() if device.type == "cuda" else nullcontext():
        forward = _run(captured.forward, shared, paths, device)
        saved = forward.outputs()[len(captured.output_names) :]
        names = [node.name for node in captured.backward.graph.nodes if node.op == "placeholder"]
        shared.update(zip(names, (forward.values[node] for node in saved)))
        backward = _run(captured.backward, shared, paths, device)
    return forward, backward


def _run(graph: GraphModule, shared: dict[str, Any], paths: ModulePaths, device: torch.device) -> Replayed:
    """Runs one graph. `shared` holds placeholders and constants that the step has already, by name, and gets new ones."""
    graph.graph.eliminate_dead_code()
    values: dict[Node, Any] = {}
    for node in graph.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            name = node.name if node.op == "placeholder" else str(node.target)
            if name not in shared:
                shared[name] = _fake(node.meta["val"] if node.op == "placeholder" else getattr(graph, name), device)
            values[node] = shared[name]
        elif node.op == "call_function":
            values[node] = _call(node, values, device)
            _check_same_kind(node, values[node], paths, device)
    return Replayed(graph, values)


def _fake(value: Any, device: torch.device) -> Any:
    if not isinstance(value, Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)


def _call(node: Node, values: dict[Node, Any], device: torch.device) -> Any:
    args = map_arg(node.args, values.__getitem__)
    kwargs = map_arg(node.kwargs, values.__getitem__)
    if "device" in kwargs:
        kwargs = {**kwargs, "device": device}
    result = node.target(*args, **kwargs)
    if node.target in _REDUCED_IN_PLACE and device.type == "cuda" and result.dim() == 0:
        return _first_element_of_whole(result, args[0], args[1])
    if node.target in IN_PLACE_OPERATORS and isinstance(result, Tensor):
        return result.detach()  # the argument itself: a second value in its storage
    return result


def _first_element_of_whole(result: Tensor, self: Tensor, target: Tensor) -> Tensor:
    """A scalar in the storage of one element per pair, which these kernels allocate first and then shrink to the sum."""
    shape = torch.broadcast_shapes(self.shape, target.shape)
    return torch.empty(shape, dtype=result.dtype, device=DEVICE).as_strided((), ())


def _check_same_kind(node: Node, value: Any, paths: ModulePaths, device: torch.device) -> None:
    """The trace chose operators by the shapes and dtypes it saw; they must be the ones the device would show."""
    traced = node.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(traced, Tensor):
        return
    if value.dtype != traced.dtype or value.shape != traced.shape:
        maker = node.args[0] if is_selection(node) else node
        raise RecorderError(
            f"{maker.target.name()} gives {_kind(traced)} on the CPU and {_kind(value)} on {device.type.upper()}: the "
            f"recorder has no rule for this operator, so that the recording would not be a GPU's{where_is(maker, paths)}"
        )


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
