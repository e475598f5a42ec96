"""Activation checkpointing repeats operators in the backward. Those that may draw random numbers are wrapped, so that
the generator's state is saved and put back: operators that exist in Python only, and a saved value more each.

An attention or dropout operator with probability 0 draws nothing, so the wrappers can go. Where something is drawn the
recorder refuses the operator itself, by name.
"""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

_OPERATORS = torch.ops.higher_order
_SAVE = "run_and_save_rng_state"
_PUT_BACK = "run_with_rng_state"
_WRAPPERS = {
    getattr(_OPERATORS, name): name
    for name in (_SAVE, _PUT_BACK, "graphsafe_run_with_rng_state")
    if hasattr(_OPERATORS, name)
}


def without_generator_states(forward: Graph, backward: Graph, returned: int) -> int:
    """Takes the wrappers out of both graphs, and the states out of what the forward saves. Returns `returned`, the
    forward's outputs that are not saved, which stay."""
    states: set[str] = set()
    for graph in (forward, backward):
        for node in list(graph.nodes):
            if node.op == "call_function" and node.target in _WRAPPERS:
                _unwrap(graph, node, _WRAPPERS[node.target], states)
    output = forward.output_node()
    saved = [node for node in output.args[0][returned:] if not (isinstance(node, Node) and node.name in states)]
    output.args = ((*output.args[0][:returned], *saved),)
    for graph in (forward, backward):
        for node in reversed(list(graph.nodes)):
            unused = not node.users and node.op != "output"
            is_state = node.name in states or (node.op == "placeholder" and "rng_state" in node.name)
            if unused and (is_state or node.target in _WRAPPERS):
                graph.erase_node(node)
    return returned


def _unwrap(graph: Graph, node: Node, wrapper: str, states: set[str]) -> None:
    operator, *args = node.args[1:] if wrapper == _PUT_BACK else node.args
    kwargs = {key: value for key, value in node.kwargs.items() if key != "rng_state"}
    with graph.inserting_before(node):
        plain = graph.call_function(operator, tuple(args), kwargs)
    plain.meta = dict(node.meta)
    if wrapper != _SAVE:
        node.replace_all_uses_with(plain)
        return
    for user in list(node.users):  # a pair: the state, and what the operator returns
        if user.args[1] == 0:
            states.add(user.name)
        else:
            plain.meta = dict(user.meta)
            user.replace_all_uses_with(plain)
            graph.erase_node(user)
