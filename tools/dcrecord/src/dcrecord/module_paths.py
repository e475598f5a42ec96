"""Which module made a node: a dotted path such as `model.layers.3.self_attn.q_proj`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torch.fx import GraphModule, Node

# Dynamo's name of the traced module, and TrainingStep's name for the module in it.
_ROOT = re.compile(r"^L\['\w+'\](\.body)?\.?")
_SUBSCRIPT = re.compile(r"\[['\"]?([^\]'\"]+)['\"]?\]")


class ModulePaths:
    """Paths of the nodes of a forward and its backward.

    A backward node carries the module stack of the forward node that it differentiates or repeats; where
    PyTorch left that out, the forward node with the same sequence number tells.
    """

    def __init__(self, forward: GraphModule) -> None:
        self._by_sequence: dict[int, str] = {}
        for node in forward.graph.nodes:
            sequence = node.meta.get("seq_nr")
            if node.op == "call_function" and sequence is not None:
                self._by_sequence.setdefault(sequence, _innermost(node.meta.get("nn_module_stack")))

    def of(self, node: Node) -> str:
        stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
        if stack:
            return _innermost(stack)
        return self._by_sequence.get(node.meta.get("seq_nr", -1), "")


def _innermost(stack: dict[str, tuple[str, object]] | None) -> str:
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return normalised(path)


def normalised(path: str) -> str:
    """`L['self'].body.layers[0]._modules['proj']` -> `layers.0.proj`."""
    path = _SUBSCRIPT.sub(r".\1", _ROOT.sub("", path))
    return path.replace("._modules.", ".").replace("_modules.", "").strip(".")


def where_is(node: Node, paths: ModulePaths) -> str:
    """The module that made the node, and the innermost line of the user's code, in the form of `where`."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', node.meta.get("stack_trace") or "")
    return where(paths.of(node), [(path, int(line), function) for path, line, function in frames])


def where(module: str, frames: Sequence[tuple[str, int, str]]) -> str:
    """` (module layers.0, at model.py:12 in forward)`: what is known of it.

    frames   path, line and function; the innermost outside of PyTorch and the recorder counts
    """
    own = [frame for frame in frames if not {"torch", "dcrecord"} & set(Path(frame[0]).parts)]
    words = [f"module {module}"] if module else []
    words += [f"at {Path(own[-1][0]).name}:{own[-1][1]} in {own[-1][2]}"] if own else []
    return f" ({', '.join(words)})" if words else ""
