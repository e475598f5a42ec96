"""Where launches stand in a graph of a DeepSpeed job.

A graph is changed in two steps. DeepSpeed's own functions insert gathers, waits, releases and reductions; then
`place` lays the graph out anew: operators in the order in which they were captured, each wait right before the
first use of its parameter, each launch where the plan wants it. What comes out follows from the graph and the plan
alone, so ranks with the same graph get the same schedule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch.fx import Graph, Node

from dcsim_deepspeed.errors import PlanMismatch
from dcsim_deepspeed.launches import GraphLaunches

# Of the first uses, the share that may come out of the order of the plan's graph: decompositions of one operator may
# read its parameters in another order. A piece behind a graph break may use a few again that were used before it.
MOST_OUT_OF_ORDER = 0.1
FEW = 2


@dataclass
class Placed:
    """What became of a plan's launches in one graph.

    launches       groups of parameters that are gathered together, in order
    moved          parameters whose launch stood behind their first use in this graph, and was moved to it
    added          parameters that the plan's launches leave out and that do not stay, gathered at their use
    out_of_order   first uses that come out of the order of the plan's graph
    """

    direction: str
    params: int
    launches: list[list[str]] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    out_of_order: int = 0


@cache
def aliasing_operators() -> frozenset[Any]:
    """Operators whose result shares memory with an argument, as DeepSpeed sees them."""
    from deepspeed.compile.util import get_no_copy_ops

    return frozenset(get_no_copy_ops())


def is_view(node: Node) -> bool:
    return node.op == "call_function" and node.target in aliasing_operators()


def first_uses(graph: Graph, name_of: Mapping[Node, str]) -> list[str]:
    """Parameters of a captured graph, into which nothing has been inserted, by first use.

    Views of parameters are looked through, and so are casts that DeepSpeed makes part of the gather: neither needs
    the gathered parameter before its own first use. A parameter that is only handed on comes last.

    name_of   names of the parameters by placeholder
    """
    owners: dict[Node, set[str]] = {node: {name} for node, name in name_of.items()}
    first: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        arguments = node.all_input_nodes
        names = set().union(*(owners.get(argument, set()) for argument in arguments))
        if not names:
            continue
        if (is_view(node) and all(argument in owners for argument in arguments)) or _is_fused_cast(node, name_of):
            owners[node] = names
        else:
            for name in names:
                first.setdefault(name, position)
    return _by_position(first)


def _is_fused_cast(node: Node, name_of: Mapping[Node, str]) -> bool:
    """Whether DeepSpeed gathers the parameter in the dtype of this cast (add_gather_and_release)."""
    from deepspeed.compile.util import is_cast_op

    is_cast, dtype = is_cast_op(node)
    if not is_cast or node.args[0] not in name_of:
        return False
    parameter = node.args[0]
    users = [user for user in parameter.users if user.op != "output"]
    return len(users) == 1 and dtype.itemsize < parameter.meta["val"].dtype.itemsize


def _by_position(first: Mapping[str, int]) -> list[str]:
    return [name for name, _ in sorted(first.items(), key=lambda entry: (entry[1], entry[0]))]


def check_first_uses(live: list[str], planned: GraphLaunches) -> int:
    """How many first uses of a job's graph come out of the plan's order. Throws PlanMismatch when they are too many."""
    places = {name: place for place, name in enumerate(planned.first_uses)}
    wrong = len(live) - _longest_rising([places[name] for name in live])
    if wrong > max(FEW, MOST_OUT_OF_ORDER * len(live)):
        index = next(index for index, name in enumerate(live) if name != planned.first_uses[index])
        raise PlanMismatch(
            f"{wrong} of {len(live)} parameters of the {planned.direction} graph are first used in another order than in "
            f"the plan's: number {index} is {live[index]} here and {planned.first_uses[index]} there"
        )
    return wrong


def _longest_rising(numbers: list[int]) -> int:
    """Length of the longest subsequence that rises."""
    ends: list[int] = []  # by length: the least number that such a subsequence ends with
    for number in numbers:
        at = bisect_left(ends, number)
        ends[at : at + 1] = [number]
    return len(ends)


class _Layout:
    """A graph into which DeepSpeed has inserted its ops: what is put anew, and where each parameter is first used."""

    def __init__(self, graph: Graph, name_of: Mapping[int, str]) -> None:
        dc = torch.ops.dc
        nodes = list(graph.nodes)
        self.gathers = {
            name_of[node.args[2]]: node for node in nodes if node.target is dc.allgather_param.default
        }
        inserted = (dc.allgather_param.default, dc.wait_allgather.default)
        self.lazy = {node for node in nodes if node.target in inserted}
        for node in nodes:  # views of nothing but gathered parameters come with their first use
            arguments = node.all_input_nodes
            if arguments and node not in self.lazy and is_view(node) and all(map(self.lazy.__contains__, arguments)):
                self.lazy.add(node)
        self.order = [node for node in nodes if node not in self.lazy]
        self.start = next(k for k, node in enumerate(self.order) if node.op != "placeholder")
        self.first = self._first_positions()

    def _first_positions(self) -> dict[str, int]:
        owners: dict[Node, set[str]] = {}
        for name, gather in self.gathers.items():
            pending = [gather]
            while pending:
                node = pending.pop()
                owners.setdefault(node, set()).add(name)
                pending += [user for user in node.users if user in self.lazy]
        first: dict[str, int] = {}
        for position, node in enumerate(self.order):
            for argument in node.all_input_nodes:
                for name in owners.get(argument, ()):
                    first.setdefault(name, position)
        return first


def place(
    graph: Graph,
    graph_id: int,
    plan: GraphLaunches,
    persistent: frozenset[str],
    name_of: Mapping[int, str],
    dtype_of: Callable[[int], torch.dtype],
) -> tuple[Graph, Placed]:
    """The graph laid out as the plan wants it, and what became of its launches.

    graph        with DeepSpeed's gathers, waits, releases and, backward, reductions
    persistent   parameters that stay gathered: in a graph that does not launch them they are there already
    name_of      names of parameters by DeepSpeed's id
    dtype_of     dtype of a parameter's shards by DeepSpeed's id
    """
    layout = _Layout(graph, name_of)
    placed = Placed(plan.direction, len(layout.first))
    at = _positions(layout, plan, persistent, placed)
    writer = _Writer(layout, graph_id, dtype_of)
    for position, node in enumerate(layout.order):
        for names in at.get(position, ()):
            writer.launch(names)
            placed.launches.append(names)
        writer.emit(node)
    writer.graph.lint()
    return writer.graph, placed


def _positions(
    layout: _Layout, plan: GraphLaunches, persistent: frozenset[str], placed: Placed
) -> dict[int, list[list[str]]]:
    """By position in the graph's order, the launches right before it."""
    first = layout.first
    at: dict[int, list[list[str]]] = {}
    launched: set[str] = set()
    for launch in plan.launches:
        names = [name for name in launch.params if name in first]
        if not names:
            continue
        launched.update(names)
        wanted = layout.start if launch.before is None else first.get(launch.before, layout.start)
        needed = min(first[name] for name in names)
        if wanted > needed:
            placed.moved += names
        at.setdefault(min(wanted, needed), []).append(names)
    for name in _by_position(first):
        if name not in launched and name not in persistent:
            placed.added.append(name)
            at.setdefault(first[name], []).append([name])
    return at


class _Writer:
    """Copies nodes into a new graph, gathers and waits when something needs them."""

    def __init__(self, layout: _Layout, graph_id: int, dtype_of: Callable[[int], torch.dtype]) -> None:
        self.graph = Graph()
        self._layout = layout
        self._graph_id = graph_id
        self._dtype_of = dtype_of
        self._copies: dict[Node, Node] = {}

    def emit(self, node: Node) -> None:
        self._bring(node)
        self._copies[node] = self.graph.node_copy(node, self._copies.__getitem__)

    def _bring(self, node: Node) -> None:
        """Copies what is put right before its first use: gathers, waits and views, oldest first."""
        pending = [argument for argument in node.all_input_nodes if argument not in self._copies]
        while pending:
            current = pending[-1]
            missing = [argument for argument in current.all_input_nodes if argument not in self._copies]
            if missing:
                pending += missing
                continue
            pending.pop()
            if current not in self._copies:
                self._copies[current] = self.graph.node_copy(current, self._copies.__getitem__)

    def launch(self, names: list[str]) -> None:
        """One group of gathers. Where a gather casts, the dtypes go with it: the op else gathers shards as they are."""
        gathers = [self._layout.gathers[name] for name in names]
        ids = [gather.args[2] for gather in gathers]
        dtypes = [gather.kwargs.get("dtype") or self._dtype_of(ds_id) for gather, ds_id in zip(gathers, ids)]
        casts = any(dtype != self._dtype_of(ds_id) for dtype, ds_id in zip(dtypes, ids))
        shards = [self._copies[gather.args[0]] for gather in gathers]
        arguments = (self._graph_id, shards, ids, *([dtypes] if casts else []))
        self.graph.call_function(torch.ops.dc.prefetch_params_fused.default, arguments)
