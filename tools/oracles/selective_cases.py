"""Which parameters DeepSpeed's pass selective_gather keeps, of random ones and of recorded workloads."""

import random
from types import SimpleNamespace

import deepcompile_graphs as graphs
import torch
from deepspeed.compile.passes import selective_gather


def selected(sizes, times, total, available, records):
    """Which parameters selective_gather keeps gathered, by their sizes, what their gathers take
    forward and backward, and the peaks `records` of both graphs."""
    records = [[("n", 0, 0, peak) for peak in each] for each in records]
    graph = [[SimpleNamespace(target=torch.ops.dc.allgather_param.default, args=(None, 0, i),
                              meta={"tensor_size": size, "device_time": times[i][d],
                                    "wall_time": 0}) for i, size in enumerate(sizes)]
             for d in range(2)]
    params = {f"p{i}": SimpleNamespace(numel=size, dtype=torch.int8, param=SimpleNamespace(
        ds_persist=False, ds_shape=())) for i, size in enumerate(sizes)}
    manager = SimpleNamespace(params=params, ds_ids={f"p{i}": i for i in range(len(sizes))})
    profile = SimpleNamespace(
        fwd_graph=SimpleNamespace(nodes=graph[0]), bwd_graph=SimpleNamespace(nodes=graph[1]),
        fwd_mem=records[0], bwd_mem=records[1], fwd_mem_complete=True, bwd_mem_complete=True,
        needs_backward=True, process_group=None)
    kept = []
    selective_gather.is_profile_incomplete = lambda graph: False
    selective_gather.print_rank_0 = lambda message: None
    selective_gather.get_deepcompile_handle = lambda: SimpleNamespace(set_persistent=kept.append)
    selective_gather.get_accelerator = lambda: SimpleNamespace(
        total_memory=lambda: total, available_memory=lambda: available, current_device=lambda: "cpu")
    selective_gather.dist = SimpleNamespace(all_reduce=lambda *a, **k: None, get_rank=lambda: 1,
                                            ReduceOp=SimpleNamespace(MIN=0))
    selective_gather.selective_gather("gm", 0, [(0, True)], {0: profile}, None, 0, {0: manager},
                                      True)
    return kept


def run_selective(seed):
    """Which of random parameters stay gathered, by what they take and the peaks."""
    dice = random.Random(seed)
    count = dice.randint(1, 12)
    sizes = [dice.choice([100, 200, 1000, 5000]) for _ in range(count)]
    times = [[dice.randint(0, 5) for _ in range(2)] for _ in range(count)]
    total = dice.randrange(1, 40000)
    available = dice.randrange(0, total + 1)
    peaks = [[dice.randrange(total) for _ in range(3)] for _ in range(2)]
    return {"sizes": sizes, "times": times, "total": total, "available": available,
            "peak": max(map(max, peaks)),
            "kept": selected(sizes, times, total, available, peaks)}


def workload_selective(recorded, device, predict):
    """Which parameters of a workload stay gathered on a device of so many bytes where a third of
    theirs has room. A gather takes predict(bytes) seconds, forward and backward."""
    sizes = [graphs.param_bytes(recorded, param) for param in recorded["params"]]
    times = [[round(predict(size) * 1e9)] * 2 for size in sizes]
    peak = device * 9 // 10 - sum(sizes) // 3
    return {"total": device, "available": device, "peak": peak,
            "kept": selected(sizes, times, device, device, [[peak], [0]])}
