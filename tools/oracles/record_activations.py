"""Records what DeepSpeed's own passes offload_activation_floor and offload_activation decide, as the
oracle of model/passes/deepcompile/offload_activation.

    PYTHONPATH=FOLDER python3 tools/oracles/record_activations.py --out tests/data/deepcompile

FOLDER as for record_deepcompile.py. The passes run on random torch.fx graphs, behind DeepSpeed's own
insertion and list scheduler, and on the forward graphs of the committed workloads; shapes, peaks,
times and budgets are given. Writes activations-<version>.json.gz (docs/design/policies.md). With --check,
records the first of them again and compares them with what is written there.
"""

import os
import random
import sys
from types import SimpleNamespace

import deepcompile_graphs as graphs
import oracle_file
import record_deepcompile as base
import torch

_LIBRARY = torch.library.Library("dc", "FRAGMENT")
for _name in ("offload_tensor", "wait_offload", "reload_tensor", "wait_reload"):
    _LIBRARY.define(f"{_name}(Tensor a, int graph_id, int id) -> Tensor")

from deepspeed.compile.passes import offload_activation as passes  # noqa: E402

DC = torch.ops.dc
GRAPH = 0
BUDGET = "DS_DC_OFFLOAD_ACT_BUDGET_GB"
WORKLOADS = ["mlp-8x4096", "llama-3.2-1b", "llama-3-8b", "qwen3-8b"]

passes.print_rank_0 = lambda message: None
passes.register_activation_offload_ops = lambda: None
passes._get_mem_usage_out_of_torch = lambda: 0


def aliasing_ops():
    new = getattr(passes, "_aliasing_ops", None)
    return new() if new else passes.get_no_copy_ops()


def tensor_of(node, params):
    """[known, floating, overlaps, aliases, param, bytes] of a node's result."""
    val = node.meta.get("val")
    known = isinstance(val, torch.Tensor)
    floating = overlaps = False
    size = 0
    if known:
        floating = val.is_floating_point()
        span = 1 + sum((n - 1) * abs(s) for n, s in zip(val.shape, val.stride()))
        overlaps = val.numel() > span
        size = val.numel() * val.element_size()
    return [known, floating, overlaps, node.target in aliasing_ops(), node.name in params, size]


def module_of(graph):
    return SimpleNamespace(graph=graph, recompile=lambda: None)


def moves_of(graph, nodes, kinds):
    """Copies and waits that were inserted, as [nodes before it, kind, node whose result it is]."""
    places = {node: i for i, node in enumerate(nodes)}
    owner = {}
    before = 0
    moves = []
    for node in graph.nodes:
        if node in places:
            before += 1
        else:
            owner[node] = owner.get(node.args[0], node.args[0])
            moves += [[before, kinds[node.target], places[owner[node]]]] if node.target in kinds else []
    return moves


def run_forward(graph, manager, returned, peak, budget):
    """What leaves, first of all and then against a budget; `graph` is changed."""
    nodes = list(graph.nodes)
    places = {node.name: i for i, node in enumerate(nodes)}
    params = set(manager.param_names)
    outputs = nodes[-1].args[0]
    row = {"nodes": base.rows_of(graph), "tensors": [tensor_of(node, params) for node in nodes],
           "returned": [places[n.name] for n in outputs[:returned]],
           "saved": [places[n.name] for n in outputs[returned:]]}
    profile = SimpleNamespace(num_fwd_outputs=returned, fwd_mem=[("", 0, 0, peak)])
    module = module_of(graph)
    passes.offload_activation_floor(module, GRAPH, [], {GRAPH: profile}, None, 0, {GRAPH: manager}, False)
    plan = passes._offload_plans[GRAPH]
    resident = getattr(passes, "_resident_bytes", {GRAPH: {}})[GRAPH]
    row["moved"] = [[places[name], size, resident.get(name, size)] for name, (_, size) in plan.items()]
    kinds = {DC.offload_tensor.default: "offload"}
    row["offloads"] = moves_of(graph, nodes, kinds)
    os.environ[BUDGET] = repr(budget / 1e9)
    passes.get_accelerator = lambda: SimpleNamespace(max_memory_allocated=lambda: peak)
    passes.offload_activation(module, GRAPH, [], {GRAPH: profile}, None, 0, {GRAPH: manager}, False)
    row["headroom"] = float(os.environ[BUDGET]) * 1e9 - float(peak)
    row["left"] = [places[name] for name in plan]
    row["kept_offloads"] = moves_of(graph, nodes, kinds)
    return row


def random_value(dice):
    """The shape of a result: none, integers, repeated or strided elements, or plain ones."""
    if dice.random() < 0.08:
        return None
    dtype = dice.choice([torch.bfloat16] * 6 + [torch.float32, torch.int64])
    rows = dice.choice([1000, 2000, 2622, 4000, 9000])
    value = torch.empty(rows, 1000, dtype=dtype, device="meta")
    kind = dice.random()
    if kind < 0.1:
        return value[:1].expand(rows, 1000)
    if kind < 0.2:
        return torch.empty(rows, 2000, dtype=dtype, device="meta")[:, :1000]
    return value.t() if kind < 0.3 else value


def scheduled(case):
    """The graph behind insertion and list scheduler; dead nodes of random graphs stand before the
    output, as the passes expect it."""
    nodes = list(base.schedule(base.insert(case), None).nodes)
    output = next(node for node in nodes if node.op == "output")
    nodes.remove(output)
    return base.list_schedule.make_graph_from_schedule(nodes + [output])


def random_forward(seed):
    dice = random.Random(seed)
    case = graphs.random_case(2 * seed)
    nodes = list(case.graph.nodes)
    for node in nodes[:-1]:
        several = any(user.target is graphs.operator.getitem for user in node.users)
        if node not in case.param_nodes and not several:
            node.meta["val"] = random_value(dice)
        if node.target is torch.ops.aten.relu.default and dice.random() < 0.7:
            node.target = torch.ops.aten._unsafe_view.default
    results = [n for n in nodes[:-1]
               if not any(user.target is graphs.operator.getitem for user in n.users)]
    made = [n for n in results if n.op != "placeholder"] or results
    returned = [dice.choice(results) for _ in range(dice.randint(1, 3))]
    saved = [dice.choice(made if dice.random() < 0.8 else results)
             for _ in range(dice.randint(1, 2 * len(nodes)))]
    if dice.random() < 0.5:
        saved = list(dict.fromkeys(saved))
    nodes[-1].args = (tuple(returned + saved),)
    graph = scheduled(case)
    peak = dice.randrange(int(1e9))
    budget = peak + dice.choice([0, 6e6, 2e7, 5e7, 1e9])
    return run_forward(graph, case.manager, len(returned), peak, budget)


def random_backward(seed):
    """Where activations come back in a graph of placeholders and calls."""
    dice = random.Random(seed)
    graph = torch.fx.Graph()
    placeholders = [graph.placeholder(f"act_{i}") for i in range(dice.randint(1, 8))]
    values = list(placeholders)
    for _ in range(dice.randint(1, 25)):
        args = dice.choice(placeholders if dice.random() < 0.5 else values), dice.choice(values)
        values.append(graph.call_function(torch.add, args))
    graph.output((values[-1], dice.choice(placeholders)))
    nodes = list(graph.nodes)
    for node in nodes:
        node.meta.update(device_time=0, tensor_size=0)
    peaks = [dice.randrange(1000) for _ in nodes] if dice.random() < 0.85 else []
    times = [dice.choice([0.0, 0.5, 1.0, 2.5]) for _ in nodes]
    names = [node.name for node in nodes]
    profile = SimpleNamespace(bwd_time=[(n, t, 0) for n, t in zip(names, times)],
                              bwd_mem=[(n, 0, 0, p) for n, p in zip(names, peaks)])
    moved = [p for p in placeholders if dice.random() < 0.7]
    dice.shuffle(moved)
    sizes = [dice.choice([50, 100, 100, 400]) for _ in moved]
    rate = dice.choice([20e3, 100e3, 1000e3])
    budget = dice.randrange(300, 2500)
    row = {"nodes": base.rows_of(graph), "times": times, "peaks": peaks, "rate": rate,
           "moved": [[names.index(p.name), size] for p, size in zip(moved, sizes)]}
    passes._offload_plans[GRAPH] = {p.name: (i, size) for i, (p, size) in enumerate(zip(moved, sizes))}
    passes._h2d_bytes_per_sec = rate
    os.environ[BUDGET] = repr(budget / 1e9)
    passes.offload_activation_floor(module_of(graph), GRAPH, [], {GRAPH: profile}, None, 0, {}, True)
    row["budget"] = float(os.environ[BUDGET]) * 1e9
    row["reloads"] = moves_of(graph, nodes, {DC.reload_tensor.default: "reload",
                                             DC.wait_reload.default: "wait"})
    return row


def workload_row(root, name):
    """Values that leave of a recorded forward graph, by their names, largest first."""
    recorded = graphs.load_workload(root / "traces" / name)
    case = graphs.workload_case(recorded, 0)
    subgraph = recorded["graphs"][0]
    value_of = graphs.describe_values(case, recorded, subgraph)
    outputs = subgraph["outputs"]
    order = sorted(range(len(outputs)), key=lambda i: outputs[i]["kind"] == "saved")
    nodes = list(case.graph.nodes)
    nodes[-1].args = (tuple(nodes[-1].args[0][i] for i in order),)
    returned = sum(each["kind"] != "saved" for each in outputs)
    graph = scheduled(case)
    names = {i: value_of.get(node.name) for i, node in enumerate(graph.nodes)}
    row = run_forward(graph, case.manager, returned, 0, 2e9)
    return {"workload": name, "moved": [[names[i], copied, kept] for i, copied, kept in row["moved"]],
            "left": [names[i] for i in row["left"]], "headroom": row["headroom"]}


def find_differing(written):
    """What DeepSpeed decides otherwise than `written`, of 40 random graphs each way."""
    return (oracle_file.differing("forward", map(random_forward, range(40)), written["forward"]) +
            oracle_file.differing("backward", map(random_backward, range(40)), written["backward"]))


def main():
    options = oracle_file.parse_options(__doc__, WORKLOADS)
    name = f"activations-{oracle_file.VERSION}.json.gz"
    if options.check:
        sys.exit(oracle_file.check(options.check / name, find_differing))
    oracle_file.write(options.out / name, "dc-activation-oracle/1", {
        "forward": [random_forward(seed) for seed in range(options.random)],
        "backward": [random_backward(seed) for seed in range(options.random)],
        "workloads": [workload_row(oracle_file.ROOT, name) for name in options.workloads],
    })


if __name__ == "__main__":
    main()
