"""Placement as a property, on the random graphs that are the oracle of DeepCompile's passes: whatever the plan, gathers
are launched before waits, waits stand before uses, nothing is lost, and launches stand where the plan has them."""

import random
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tools/oracles"))

pytest.importorskip("deepspeed")
import deepcompile_graphs  # noqa: E402
import deepspeed.compile.util as util  # noqa: E402

util.get_deepcompile_handle = lambda: None
from deepspeed.compile.passes import zero3_compile  # noqa: E402

from dcsim_deepspeed.launches import GraphLaunches, Launch  # noqa: E402
from dcsim_deepspeed.placing import aliasing_operators, first_uses, place  # noqa: E402
from random_plans import random_launches  # noqa: E402

GRAPHS = 320
_DC = torch.ops.dc


def placed_case(seed):
    """A random graph, its plan, and what place() makes of them."""
    dice = random.Random(seed)
    case = deepcompile_graphs.random_case(seed)
    ids = case.manager.ds_ids
    nodes = {node: node.name for node in case.graph.nodes if node.name in ids}
    for node in nodes:
        node.meta["val"] = torch.empty([0], dtype=case.manager.params[node.name].dtype)
    uses = first_uses(case.graph, nodes)
    kept = frozenset(name for name in uses if dice.random() < 0.2)
    launches = random_launches(dice, uses, set(kept), ahead=dice.randint(0, 8))
    plan = GraphLaunches("forward", tuple(uses), tuple(Launch(e["before"], tuple(e["params"])) for e in launches))
    before = [node.name for node in case.graph.nodes if node.op == "call_function"]
    if case.grads is None:
        graph = zero3_compile.add_gather_and_release(0, case.graph, case.manager, case.param_nodes)
    else:
        graph = zero3_compile.add_gather_and_reduce(0, case.graph, case.manager, case.param_nodes, case.grads)
    inserted = [node.name for node in graph.nodes if not is_dead(node)]
    names = {ds_id: name for name, ds_id in ids.items()}
    dtypes = {ids[name]: parameter.dtype for name, parameter in case.manager.params.items()}
    laid_out, placed = place(graph, 0, plan, kept, names, dtypes.__getitem__)
    return before, inserted, plan, kept, names, laid_out, placed


def is_dead(node):
    """Whether nothing comes of it but views and waits that nobody reads: these are left out."""
    lazy = node.target in aliasing_operators() or node.target is _DC.allgather_param.default
    return lazy and all(is_dead(user) for user in node.users)


@pytest.mark.parametrize("seeds", [range(start, GRAPHS, 8) for start in range(8)])
def test_any_plan_is_laid_out_correctly(seeds):
    for seed in seeds:
        before, inserted, plan, kept, names, graph, placed = placed_case(seed)
        nodes = list(graph.nodes)
        own = [node for node in nodes if node.target is not _DC.prefetch_params_fused.default]
        assert sorted(node.name for node in own if not is_dead(node)) == sorted(inserted), seed
        computing = [node.name for node in own if node.name in before and node.target not in aliasing_operators()]
        assert computing == [name for name in before if name in set(computing)], seed
        check_launches(seed, nodes, plan, kept, names, placed)


def check_launches(seed, nodes, plan, kept, names, placed):
    """Each parameter is launched once, before it is waited for, unless it stays; launches come as planned."""
    launched, waited = [], set()
    for node in nodes:
        if node.target is _DC.prefetch_params_fused.default:
            group = [names[ds_id] for ds_id in node.args[2]]
            assert not waited & set(group), seed
            launched.append(group)
        elif node.target is _DC.wait_allgather.default:
            name = names[node.args[2]]
            assert name in kept or any(name in group for group in launched), seed
            waited.add(name)
    assert launched == placed.launches == [list(launch.params) for launch in plan.launches], seed
    assert placed.moved == [] and placed.added == [], seed
    flat = [name for group in launched for name in group]
    assert len(flat) == len(set(flat)) and set(flat) == set(plan.first_uses) - kept, seed
    check_anchors(seed, nodes, plan, names)


def check_anchors(seed, nodes, plan, names):
    """What is waited for behind a launch is not yet in use where its anchor is, and everything before it is."""
    order = [names[node.args[2]] for node in nodes if node.target is _DC.wait_allgather.default]
    position = {name: index for index, name in enumerate(plan.first_uses)}
    waits = 0
    launches = iter(plan.launches)
    for node in nodes:
        if node.target is _DC.wait_allgather.default:
            waits += 1
        elif node.target is _DC.prefetch_params_fused.default:
            before = next(launches).before
            if before is None:
                assert waits == 0, seed
            else:
                assert before in order[waits:], seed
                assert all(position[name] <= position[before] for name in order[:waits]), seed


def test_a_launch_behind_its_own_use_is_moved_to_it():
    case = deepcompile_graphs.random_case(2)
    nodes = {node: node.name for node in case.graph.nodes if node.name in case.manager.ds_ids}
    for node in nodes:
        node.meta["val"] = torch.empty([0], dtype=torch.bfloat16)
    uses = first_uses(case.graph, nodes)
    assert len(uses) > 2
    graph = zero3_compile.add_gather_and_release(0, case.graph, case.manager, case.param_nodes)
    names = {ds_id: name for name, ds_id in case.manager.ds_ids.items()}
    late = GraphLaunches("forward", tuple(uses), (Launch(uses[-1], (uses[0],)),))
    _, placed = place(graph, 0, late, frozenset(), names, lambda _: torch.bfloat16)
    assert placed.moved == [uses[0]]
    assert sorted(placed.added) == sorted(uses[1:])
