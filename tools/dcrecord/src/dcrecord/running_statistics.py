"""What a forward may change in place: the running statistics of batch norms, and counters.

AOTAutograd makes every update functional: the batch norm returns new statistics, a counter's sum is a new tensor, and
both are further outputs of the forward, to be copied over the buffers behind it. Here they become what they are in the
module, writes to the buffers by the batch norm's kernel and by add_, and no outputs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._functorch._aot_autograd.descriptors import BufferAOTInput
from torch.fx import Graph, Node

from dcrecord.fake_results import results_by

aten = torch.ops.aten

_FUNCTIONAL = aten._native_batch_norm_legit_functional.default
_IN_PLACE = aten._native_batch_norm_legit.default
_COUNT = aten.add_.Tensor

# Operators that write to buffers of a recorded graph.
IN_PLACE_OPERATORS = (_IN_PLACE, _COUNT)

# Positions of the statistics among the results of the batch norm that returns new ones, and of the buffers that they
# stand for among its arguments.
_STATISTICS = (3, 4)


def is_update(node: Node, kind: Any) -> bool:
    """Whether the joint graph's output `node`, which the forward leaves in the input of `kind`, is such an update of it."""
    before = _updated(node)
    return before is not None and isinstance(kind, BufferAOTInput) and before.meta.get("desc") == kind


def update_in_place(forward: Graph, updates: int) -> None:
    """Rewrites the forward's first `updates` outputs, and returns what is left."""
    returned = forward.output_node()
    updated, rest = returned.args[0][:updates], returned.args[0][updates:]
    returned.args = (tuple(rest),)
    for node in updated:
        if node.target is aten.add.Tensor:
            _replace(forward, node, _COUNT)
        else:  # the backward is handed the statistic, and reads it in evaluation only
            node.replace_all_uses_with(_updated(node))
    for norm in [node for node in forward.nodes if node.target is _FUNCTIONAL and not _returns_statistics(node)]:
        _replace(forward, norm, _IN_PLACE)


def _returns_statistics(norm: Node) -> bool:
    """Whether somebody reads the new statistics: they are of no buffer, but computed in the step."""
    return any(user.args[1] in _STATISTICS and bool(user.users) for user in norm.users)


def _updated(node: Node) -> Node | None:
    """What the node is a new value of: a batch norm's statistic, in the buffer's dtype, or a tensor to which a number was
    added, if nobody but the next step reads the sum."""
    if node.target is aten.add.Tensor:
        return None if isinstance(node.args[1], Node) or len(node.users) > 1 else node.args[0]
    if node.target is aten._to_copy.default:
        node = node.args[0]
    if node.target is not operator.getitem or node.args[0].target is not _FUNCTIONAL:
        return None
    norm, position = node.args
    return norm.args[position] if position in _STATISTICS else None


def _replace(graph: Graph, node: Node, target: Any) -> None:
    with graph.inserting_before(node):
        new = graph.call_function(target, node.args, dict(node.kwargs))
    new.meta = dict(node.meta)
    node.replace_all_uses_with(new)
    graph.erase_node(node)
    new.name = node.name


@contextmanager
def batch_norms_on_cuda() -> Iterator[None]:
    """Batch norms give what PyTorch's own CUDA kernels give: statistics of half-precision inputs in float32, also in
    evaluation, and results and gradients in the layout of the input.

    Source: batch_norm_cuda and batch_norm_backward_cuda in aten/src/ATen/native/cuda/Normalization.cu.
    """
    own: dict[Any, Any] = {
        _FUNCTIONAL: _functional_results,
        _IN_PLACE: _results,
        aten._native_batch_norm_legit.no_stats: _results,
        aten._native_batch_norm_legit_no_training.default: _results,
        aten.native_batch_norm_backward.default: _gradients,
    }
    with results_by(own):
        yield


def _results(fake_mode: Any, _: Any, input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    accumulated = torch.float64 if input.dtype is torch.float64 else torch.float32
    with fake_mode:
        statistics = [input.new_empty(input.shape[1], dtype=accumulated) for _ in range(2)]
        return torch.empty_like(input), *statistics


def _functional_results(fake_mode: Any, func: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    results = _results(fake_mode, func, *args, **kwargs)
    with fake_mode:
        return *results, torch.empty_like(args[3]), torch.empty_like(args[4])


def _gradients(fake_mode: Any, _: Any, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    input, weight, mask = args[1], args[2], args[9]
    affine = input if weight is None else weight
    with fake_mode:
        of_input = torch.empty_like(input) if mask[0] else None
        of_affine = [affine.new_empty(input.shape[1]) if wanted else None for wanted in mask[1:]]
        return of_input, *of_affine
