"""Records what DeepSpeed's own DeepCompile passes decide, as the oracle of model/passes/deepcompile.

    PYTHONPATH=FOLDER python3 tools/oracles/record_deepcompile.py --out tests/data/deepcompile

FOLDER holds an installed DeepSpeed 0.17.1, 0.19.6 or 0.19.8 (DS_BUILD_OPS=0 pip install --no-deps
--target FOLDER deepspeed==0.19.8) with its requirements; needs torch and scipy, no GPU. The insertion of
gathers and releases, the list scheduler, prefetch, selective_gather and offload_adam_states are
DeepSpeed's, run on torch.fx graphs over stand-ins for its ops; sizes, times, peaks and budgets are given. Writes
<version>.json.gz (docs/design/policies.md) with the committed workloads and 320 random graphs. With
--check, records the first of them again and compares them with what is written there.

A file ("format": "dc-deepcompile-oracle/1") holds
  versions, ranks
  workloads   graph, budget, number and FNV-1a hash of the words of the order; small ones in full
  random      `nodes` as rows (deepcompile_graphs.py); `schedules` as [budget, order], none where DeepSpeed fails;
              `prefetch` and `selective` with what they were given and decided
  offload     `total` and `sizes` of states; `graphs` in the order of execution with `peaks` by node and `moves` as
              [nodes before it, state]
"""

import random
import sys
from types import SimpleNamespace

import deepcompile_graphs as graphs
import deepspeed.compile.util as util
import oracle_file
import selective_cases
import torch

util.get_deepcompile_handle = lambda: None
from deepspeed.compile import list_schedule  # noqa: E402
from deepspeed.compile.passes import offload_adam_states, prefetch, zero3_compile  # noqa: E402

SMALL = ["tiny-llama", "mlp-8x4096"]
LARGE = ["llama-3.2-1b", "llama-3-8b", "qwen3-8b", "qwen3-1.7b", "mistral-7b",
         "qwen3-8b-default-partition"]
# 0.17.1 fuses no casts, fails on layer norms' several results or waits elsewhere for what they use,
# and releases a parameter behind a slice of it that is still read.
if hasattr(util, "is_cast_op"):
    SMALL.append("autocast")
    LARGE += ["gpt2", "own-code", "gpt2-xl", "llama-3.2-1b-autocast"]
WORKLOADS = SMALL + LARGE
# Decided in another way here, for a reason (docs/design/policies.md): views of parameters that the forward
# saves; a parameter that one graph alone reads through casts only.
DIFFERENT = {("qwen3-8b-default-partition", 1), ("llama-3.2-1b-autocast", 1)}
# The schedulers go back along a chain of ops by recursion: gpt2-xl's is deeper than Python's limit,
# at which DeepSpeed gives up.
sys.setrecursionlimit(100_000)
FOLDERS = {"autocast": "tests/data/training/autocast"}
RANKS = 8
DEVICE = 80_000_000_000
DC = torch.ops.dc
TARGETS = {
    DC.allgather_param.default: "gather",
    DC.wait_allgather.default: "wait",
    DC.release_param.default: "release",
    DC.reduce_grad.default: "reduce",
}
HAS_BUDGET = hasattr(list_schedule, "SchedulerMemoryBudget")
FAILS_ON_ODD_GRAPHS = not hasattr(list_schedule, "_free_path_allgather_key")  # before PR #8033


def kind_of(node):
    if node.op in ("placeholder", "output"):
        return node.op
    if node.target in TARGETS:
        return TARGETS[node.target]
    return "item" if node.target is graphs.operator.getitem else "op"


def narrow(case):
    """Leaves out what 0.17.1's insertion fails on: dead views, parameters without users, and
    parameters without a gradient in a backward graph."""
    for node in reversed(list(case.graph.nodes)):
        if node.op == "call_function" and not node.users and node.target in util.get_no_copy_ops():
            case.graph.erase_node(node)
    case.param_nodes = [node for node in case.param_nodes if node.users]
    if case.grads is not None:
        case.manager.param_names = [name for name in case.manager.param_names if case.grads[name]]


def insert(case):
    """DeepSpeed's gathers, releases and reductions, with the metadata its profiler would leave."""
    if FAILS_ON_ODD_GRAPHS:
        narrow(case)
    if case.grads is None:
        graph = zero3_compile.add_gather_and_release(0, case.graph, case.manager, case.param_nodes)
    else:
        graph = zero3_compile.add_gather_and_reduce(0, case.graph, case.manager, case.param_nodes,
                                                    case.grads)
    for node in graph.nodes:
        node.meta.setdefault("device_time", 0)
        node.meta["tensor_size"] = 0
        if kind_of(node) == "gather":
            param = case.manager.params[node.args[0].name]
            itemsize = node.kwargs.get("dtype", param.dtype).itemsize
            shard = (param.numel + RANKS - 1) // RANKS
            node.meta["tensor_size"] = param.numel * itemsize
            node.meta["allgather_allocation_bytes"] = shard * RANKS * itemsize
    return graph


def schedule(graph, budget):
    """The scheduled graph; None where 0.17.1 fails: it issues a release ahead of the op in front of
    it (KeyError), or twice (ValueError)."""
    if FAILS_ON_ODD_GRAPHS:
        try:
            return list_schedule.fast_free_schedule(graph, 0, 0, False)
        except (KeyError, ValueError):
            return None
    if not HAS_BUDGET:
        return list_schedule.fast_free_schedule(graph, 0, 0, False)
    given = None
    if budget is not None:
        given = list_schedule.SchedulerMemoryBudget(max_gathered_bytes=budget, source="given")
    return list_schedule.fast_free_schedule(graph, 0, 0, False, scheduler_budget=given)


def copy_of(graph):
    return list_schedule.make_graph_from_schedule(list(graph.nodes))


def budgets_of(graph, dice):
    """None, one that holds the largest gather, ones between that and all of them."""
    sizes = [n.meta["allgather_allocation_bytes"] for n in graph.nodes if kind_of(n) == "gather"]
    if not HAS_BUDGET or not sizes:
        return [None]
    return [None, max(sizes), max(sizes) + dice.randrange(sum(sizes) + 1), sum(sizes) // 3]


def rows_of(graph):
    """Every node as deepcompile_graphs.KINDS describes it."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    no_copy = util.get_no_copy_ops()
    rows = []
    for node in graph.nodes:
        args = []
        torch.fx.node.map_arg(node.args, lambda n: args.append(position[n]))
        kind = kind_of(node)
        inserted = kind in ("gather", "wait", "release", "reduce")
        rows.append([
            graphs.KINDS.index(kind), node.target in no_copy, args,
            node.args[2] if inserted else None, node.args[3] if kind == "release" else 0,
            node.meta["device_time"], node.meta["tensor_size"],
            node.meta.get("allgather_allocation_bytes", 0), node.name if kind == "gather" else ""
        ])
    return rows


def order_of(graph, scheduled):
    position = {node.name: i for i, node in enumerate(graph.nodes)}
    return [position[node.name] for node in scheduled.nodes]


def token_of(node, case):
    """A node in words that do not depend on positions: "g3" gathers parameter 3, "12" is op 12."""
    kind = kind_of(node)
    if kind in ("gather", "wait", "release", "reduce"):
        return {"gather": "g", "wait": "w", "release": "f", "reduce": "r"}[kind] + str(node.args[2])
    return str(case.op_of[node.name]) if kind == "op" else ""


def fnv1a(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return f"{value:016x}"


def predict(size):
    """Time of an all-gather in prefetch's tests: seconds for bytes, a straight line."""
    return 0 if size == 0 else 20e-6 + size / 400e9


def prefetched(graph, peaks, total):
    """The nodes of a scheduled graph behind the pass prefetch; a fused prefetch is the list of its
    parameters. `peaks` are by node."""
    nodes = list(graph.nodes)
    profile = SimpleNamespace(
        fwd_graph=graph, fwd_mem_complete=True, process_group=None,
        fwd_mem=[(node.name, 0, 0, peak) for node, peak in zip(nodes, peaks)],
        fwd_time=[(node.name, 0, 0) for node in nodes],
        fwd_tensor_sizes=[(node.name, node.meta["tensor_size"]) for node in nodes])
    accelerator = SimpleNamespace(total_memory=lambda: total, current_device=lambda: "cpu",
                                  available_memory=lambda: 0, memory_allocated=lambda: 0,
                                  max_memory_allocated=lambda: 0)
    prefetch.get_accelerator = lambda: accelerator
    prefetch.dist = SimpleNamespace(all_reduce=lambda *a, **k: None, get_rank=lambda: 1,
                                    ReduceOp=SimpleNamespace(MIN=0))
    prefetch.create_predictor = lambda: predict
    gm = SimpleNamespace(graph=graph)
    prefetch.schedule_prefetch(gm, 0, [], {0: profile}, None, 0, None, False)
    return [node.args[2] if node.target is DC.prefetch_params_fused.default else node
            for node in gm.graph.nodes]


def run_prefetch(graph, names, seed, total):
    """prefetch's order of a scheduled graph: nodes, and lists of gathers that are fused, by their
    positions `names`; with the peaks that it saw."""
    dice = random.Random(seed)
    peaks = [dice.randrange(int(total)) for _ in graph.nodes]
    if dice.random() < 0.3:
        peaks = [0] * len(peaks)
    gather_of = {n.args[2]: names[n.name] for n in graph.nodes if kind_of(n) == "gather"}
    order = [[gather_of[i] for i in each] if isinstance(each, list) else names[each.name]
             for each in prefetched(graph, peaks, total)]
    return {"total": total, "peaks": peaks, "order": order}


def workload_prefetch(scheduled, case):
    """prefetch's order of a workload in words, "p3,5" for parameters that are gathered together,
    without the gathers behind them. The peak of a node up to which there are k words is
    k * 7919 % 1000 thousandths of the device."""
    peaks = []
    words = 0
    for node in scheduled.nodes:
        words += token_of(node, case) != ""
        peaks.append(words * 7919 % 1000 * (DEVICE // 1000))
    order = prefetched(scheduled, peaks, DEVICE)
    tokens = ["p" + ",".join(map(str, each)) if isinstance(each, list) else token_of(each, case)
              for each in order if isinstance(each, list) or kind_of(each) != "gather"]
    tokens = [token for token in tokens if token]
    fused = sum(isinstance(each, list) for each in order)
    return {"total": DEVICE, "groups": fused, "tokens": len(tokens), "hash": fnv1a(" ".join(tokens))}


def use_parameters_once(case):
    """All users of a parameter but the first take an input instead."""
    tokens = next(node for node in case.graph.nodes if node.name.startswith("tokens"))
    for node in case.param_nodes:
        for user in list(node.users)[1:]:
            user.replace_input_with(node, tokens)


def random_rows(seed):
    case = graphs.random_case(seed)
    if FAILS_ON_ODD_GRAPHS and seed % 4:
        use_parameters_once(case)  # most graphs that 0.17.1 fails on use one several times
    graph = insert(case)
    row = {"nodes": rows_of(graph), "schedules": []}
    for budget in budgets_of(graph, random.Random(seed)):
        scheduled = schedule(copy_of(graph), budget)
        if scheduled:
            row["schedules"].append([budget, order_of(graph, scheduled)])
    total = random.Random(seed).choice([1e4, 1e5, 1e10])
    names = {node.name: i for i, node in enumerate(graph.nodes)}
    if row["schedules"]:
        row["prefetch"] = run_prefetch(schedule(copy_of(graph), None), names, seed, total)
    row["selective"] = selective_cases.run_selective(seed)
    return row


def chain(length):
    """A graph of a placeholder, `length` calls and the output; names of all nodes."""
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = torch.empty(1, device="meta")
    for _ in range(length):
        node = graph.call_function(torch.neg, (node,))
    graph.output(node)
    return graph


def run_offload(seed):
    """Which states offload_adam_states takes off the GPU before each forward graph, and behind
    which nodes of the backward graphs it brings them back. Graphs run forward, then backward in
    the opposite order; a state has exp_avg, exp_avg_sq and hp_param of the same size."""
    dice = random.Random(seed)
    sizes = [dice.choice([50, 100, 400, 1000]) for _ in range(dice.randint(1, 3))]
    total = dice.randrange(500, 6000)
    count = dice.choice([1, 1, 2])
    module = offload_adam_states
    states = [torch.empty(size // 2, dtype=torch.bfloat16, device="meta") for size in sizes]
    key = module._make_offload_state_key
    module.optimizer = SimpleNamespace(
        state={i: {key("exp_avg"): t, key("exp_avg_sq"): t} for i, t in enumerate(states)},
        fp32_partitioned_groups_flat=states, hp_params_pin_buffers=states)
    nothing = lambda *args: None
    module.offload_adam_states_sync = module.reload_adam_states_sync = nothing
    module.sync_reload_states = module.print_r0 = nothing
    module.get_accelerator = lambda: SimpleNamespace(total_memory=lambda: total)
    order = [(g, True) for g in range(count)]
    row = {"total": total, "sizes": [size for size in sizes for _ in range(3)], "graphs": []}
    for backward, g in [(False, g) for g in range(count)] + [(True, g) for g in range(count)][::-1]:
        graph = chain(dice.randint(1, 8))
        nodes = list(graph.nodes)
        most = dice.choice([total, total * 2 // 3, total // 3])
        peaks = [dice.randrange(most) for _ in nodes]
        memory = [(node.name, 0, 0, peak) for node, peak in zip(nodes, peaks)]
        profile = SimpleNamespace(fwd_mem=memory, bwd_mem=memory)
        module.offload_opt_states_inc(graph, g, order, {g: profile}, 0, None, backward)
        row["graphs"].append({"backward": backward, "peaks": peaks, "moves": moves_of(graph, nodes)})
    return row


def moves_of(graph, nodes):
    """Every copy that was inserted, as [how many of `nodes` stand before it, state]."""
    tensors = ["exp_avg", "exp_avg_sq", "hp_param"]
    before = 0
    moves = []
    for node in graph.nodes:
        if node in nodes:
            before += 1
        elif node.target in (torch.ops.dc.offload_opt_launch.default,
                             torch.ops.dc.reload_opt.default):
            task = offload_adam_states._op_task_registry[node.args[1]]
            moves.append([before, 3 * task[0] + tensors.index(task[2])])
    return moves


def workload_rows(root, name):
    recorded = graphs.load_workload(root / FOLDERS.get(name, f"traces/{name}"))
    for index in range(len(recorded["graphs"])):
        if (name, index) in DIFFERENT:
            continue
        case = graphs.workload_case(recorded, index)
        graph = insert(case)
        for budget in budgets_of(graph, random.Random(index)):
            scheduled = schedule(copy_of(graph), budget)
            tokens = [token for token in (token_of(n, case) for n in scheduled.nodes) if token]
            row = {"workload": name, "graph": index, "budget": budget, "tokens": len(tokens),
                   "hash": fnv1a(" ".join(tokens))}
            if name in SMALL:
                row["order"] = tokens
            if budget is None:
                row["prefetch"] = workload_prefetch(scheduled, case)
            if budget is None and index == 0:
                row["selective"] = selective_cases.workload_selective(recorded, DEVICE, predict)
            print(row["workload"], index, budget, row["hash"], flush=True)
            yield row


def find_differing(written):
    """What DeepSpeed decides otherwise than `written`, of 40 random graphs and small workloads."""
    rows = [row for name in SMALL for row in workload_rows(oracle_file.ROOT, name)]
    offload = map(run_offload, range(40)) if written["offload"] else []
    return (oracle_file.differing("random graph", map(random_rows, range(40)), written["random"]) +
            oracle_file.differing("offload", offload, written["offload"]) +
            [f"{row['workload']}, graph {row['graph']}" for row in rows
             if row not in written["workloads"]])


def main():
    options = oracle_file.parse_options(__doc__, WORKLOADS)
    name = f"{oracle_file.VERSION}.json.gz"
    if options.check:
        sys.exit(oracle_file.check(options.check / name, find_differing))
    oracle_file.write(options.out / name, "dc-deepcompile-oracle/1", {
        "ranks": RANKS,
        "random": [random_rows(seed) for seed in range(options.random)],
        "workloads": [row for name in options.workloads
                      for row in workload_rows(oracle_file.ROOT, name)],
        "offload": [run_offload(seed) for seed in range(options.random)]
                   if hasattr(offload_adam_states, "NAME_SYNC") else [],  # 0.17.1 has another one
    })


if __name__ == "__main__":
    main()
