"""Modules that are compiled each on its own, as users of FSDP2 do: the children of the outermost lists of modules. What lies
outside runs as PyTorch has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch.fx import GraphModule, Node
from torch.utils.checkpoint import CheckpointPolicy

from dcrecord.inductor.releases import RELEASE, register_release
from dcrecord.module_paths import ModulePaths
from dcrecord.partition import returns_alias

# Nodes keep what stands here when PyTorch copies or decomposes them.
_CUSTOM = "custom"
_REGION = "dcrecord_region"


def mark_regions(joint: GraphModule) -> bool:
    """Tells each node the module that it is compiled with, "" for none. Whether there is such a module."""
    paths = ModulePaths(joint)
    regions = _Regions(paths.of(node) for node in joint.graph.nodes)
    for node in joint.graph.nodes:
        if node.op != "call_function":
            continue
        path = paths.of(node)
        inputs = [each for each in node.all_input_nodes if each.op == "call_function"]
        # A sum of gradients has no module: it belongs to what made the last of them.
        sums = not path and inputs and node.meta.get("partitioner_tag") == "is_backward"
        region = region_of(max(inputs)) if sums else regions.of(path)
        node.meta[_CUSTOM] = {**node.meta.get(_CUSTOM, {}), _REGION: region}
    return bool(regions.found)


def region_of(node: Node) -> str:
    return node.meta.get(_CUSTOM, {}).get(_REGION, "")


def runs_alone(node: Node) -> bool:
    """Whether PyTorch runs the node's operator as it is. What Inductor's own passes make is compiled."""
    outside = node.meta.get(_CUSTOM, {}).get(_REGION) == ""
    return node.op == "call_function" and outside and not returns_alias(node.target)


def keep_between_regions(joint: GraphModule) -> None:
    """Marks what the backward does not compute again: what PyTorch runs, and what leaves a compiled module."""
    for node in joint.graph.nodes:
        leaves = any(region_of(user) != region_of(node) for user in node.users if user.op == "call_function")
        if runs_alone(node) or (region_of(node) and leaves):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def part_regions(graph: GraphModule) -> None:
    """Puts a marker that Inductor does not see through behind what one compiled module hands to another."""
    register_release()
    for node in list(graph.graph.nodes):
        others = [user for user in node.users if region_of(user) and region_of(user) != region_of(node)]
        if region_of(node) and others and isinstance(node.meta.get("val"), torch.Tensor):
            with graph.graph.inserting_after(node):
                marker = graph.graph.call_function(RELEASE, (node,))
            marker.meta["val"] = node.meta["val"]
            node.replace_all_uses_with(marker, delete_user_cb=lambda user, others=others: user in others)
    graph.graph.lint()
    graph.recompile()


@contextmanager
def running_the_rest() -> Iterator[None]:
    """Inductor calls the operators outside of compiled modules as they are."""
    from torch._inductor import graph

    unsupported = graph.fallback_node_due_to_unsupported_type

    def falls_back(node: Node, *further: bool) -> bool:
        return runs_alone(node) or unsupported(node, *further)

    with mock.patch.object(graph, "fallback_node_due_to_unsupported_type", falls_back):
        yield


class _Regions:
    """The children of every list of two modules or more that lies in no other such list."""

    def __init__(self, paths: Iterable[str]) -> None:
        children: dict[str, set[str]] = defaultdict(set)
        for path in paths:
            parts = path.split(".")
            for index, part in enumerate(parts):
                if index and part.isdigit():
                    children[".".join(parts[:index])].add(part)
        self.found = {name for name, members in children.items() if len(members) > 1}

    def of(self, path: str) -> str:
        parts = path.split(".")
        for index, part in enumerate(parts):
            if part.isdigit() and ".".join(parts[:index]) in self.found:
                return ".".join(parts[: index + 1])
        return ""
