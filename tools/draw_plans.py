#!/usr/bin/env python3
"""Draws plans at random, so that predictions are tested on schedules that nobody chose.

    tools/draw_plans.py BIN CLUSTER GPUS PLANS SEED WORKLOAD... [KEY=VALUE...] >> configs/suites/CLUSTER.yaml

BIN is the folder of the built programs, CLUSTER a name in configs/clusters. Each WORKLOAD of traces gets PLANS plans.
A plan that dc-sim refuses, or predicts to stop or to leave less than 16 GB free, is drawn again, up to a hundred times,
and so is one in which a KEY that is given has another VALUE.
"""
import json
import pathlib
import random
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# Bytes that stay free, so that errors of memory stop no run.
MARGIN = 16_000_000_000
TRIES = 100


def size(draw, least, most):
    """Elements, evenly by their logarithm, of two digits."""
    return f"{int(float(f'{least * (most / least) ** draw.random():.1e}'))} elements"


def chosen(draw, options):
    """A value for each key: of a list, each as often as it stands there."""
    return {key: draw.choice(values) for key, values in options.items()}


def plain(draw, stage):
    plan = chosen(draw, {
        "double_buffer": [True, True, False],
        "communicators": [1, 2],
        "buffer_lifetime": ["step", "step", "permanent"],
        "release": ["event_ordered", "event_ordered", "record_stream"],
        "align_tensors": [False, True],
    })
    plan["reduce_bucket"] = size(draw, 1e7, 1e9)
    if stage < 3:
        plan |= chosen(draw, {"reduce_collective": ["all_reduce", "reduce_scatter"]})
        if plan["reduce_collective"] == "all_reduce":
            plan |= chosen(draw, {"flush_collectives": ["per_parameter", "one_per_bucket"]})
        return plan
    plan |= chosen(draw, {
        "gather_engine": ["nccl", "nccl", "copy_engine"],
        "keep_gathered": ["none", "none", "all", ["*norm*"], ["*1*"], ["*2*", "*bias*"]],
        "offload_optimizer": ["none"] * 7 + ["all"],
        "offload_parameters": [False] * 11 + [True],
    })
    ahead = draw.choice(["at use", "gather_ahead", "overlap_gathers"])
    fuse = draw.random() < 0.4
    passes = ["gather_at_use"]
    if ahead == "gather_ahead":
        plan["gather_ahead"] = draw.randint(1, 32)
    if ahead != "at use":
        passes.append(ahead)
    if fuse:
        plan["max_fuse_size"] = f"{draw.choice([8, 32, 64, 256])} MiB"
        passes.append("fuse_gathers")
    for key, off in (("keep_gathered", "none"), ("offload_parameters", False), ("offload_optimizer", "none")):
        if plan[key] == off:
            del plan[key]
        else:
            passes.append(key)
    if fuse or ahead == "overlap_gathers":
        plan["passes"] = passes
    return plan


def eager(draw, stage):
    plan = chosen(draw, {"contiguous_gradients": [True, True, False]}) if stage < 3 else {
        "prefetch_bucket": size(draw, 1e6, 5e8),
        "persistence_threshold": size(draw, 1e3, 1e7),
        "max_live": size(draw, 1e8, 4e9),
        "max_reuse_distance": size(draw, 1e6, 4e9),
    }
    plan["reduce_bucket"] = size(draw, 1e7, 1e9)
    return plan


def deepcompile(draw, stage):
    plan = {"reduce_bucket": size(draw, 1e7, 1e9)} | chosen(draw, {"policy": ["deepcompile-0.19.6", "deepcompile-0.19.8"]})
    if stage == 3:
        plan |= chosen(draw, {"gather_times": ["deepspeed", "as_measured"], "offload_activation": [False] * 5 + [True]})
    return plan


def plan_of(draw):
    """The file of configs/plans that a plan changes, and the keys to change."""
    stage = draw.choice([1, 2, 3, 3, 3])
    kind = draw.choice([plain] * 4 + [eager, deepcompile])
    base = f"zero{stage}" + {plain: "", eager: "-eager", deepcompile: "-deepcompile"}[kind]
    keys = chosen(draw, {
        "gradient_accumulation_steps": [1, 1, 2, 3],
        "gradient_clipping": ["none", "none", "1.0"],
        "optimizer": ["fused", "fused", "foreach", "for_loop"],
        "allocator": ["default", "default", "expandable_segments"],
    }) | kind(draw, stage)
    if keys["gradient_accumulation_steps"] > 1 and kind is not deepcompile:
        keys |= chosen(draw, {"gradient_reduction": ["each_backward", "coalesced"]})
    return f"{base}.yaml", keys


def flow(value):
    """As YAML writes it in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    if isinstance(value, bool) or "*" in str(value):
        return json.dumps(value)
    return str(value)


def fits(program, cluster, gpus, workload, base, keys):
    settings = [word for key, value in keys.items() for word in ("--set", f"{key}={flow(value)}")]
    done = subprocess.run(
        [program, "simulate", f"traces/{workload}", "--cluster", f"configs/clusters/{cluster}.yaml", "--gpus", gpus,
         "--plan", f"configs/plans/{base}", "--set", "backend=aten", *settings, "--json", "-"],
        cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{workload} {base} {settings}: {done.stderr.strip()}", file=sys.stderr)
        return False
    result = json.loads(done.stdout)
    count, unit = result["cluster"]["gpu"]["memory"].split()
    memory = int(count) * {"B": 1, "MiB": 1 << 20}[unit]
    return result["outcome"] == "completed" and result["peak_reserved_bytes"] + result["outside_allocator_bytes"] + MARGIN <= memory


def draw_one(draw, wanted, *case):
    """The first plan drawn that has what is wanted and fits: its file and keys."""
    for _ in range(TRIES):
        base, keys = plan_of(draw)
        if all(flow(keys.get(key)) == value for key, value in wanted) and fits(*case, base, keys):
            return base, keys
    sys.exit(f"draw_plans.py: none of {TRIES} plans fits {case[-1]}; dc-sim says of each why above")


def main():
    if len(sys.argv) < 7:
        print(__doc__, file=sys.stderr)
        return 2
    folder, cluster, gpus, plans, seed, *rest = sys.argv[1:]
    wanted = [word.split("=", 1) for word in rest if "=" in word]
    program = str(pathlib.Path(folder).resolve() / "dc-sim")
    draw = random.Random(int(seed))
    print(f"  # Drawn by tools/draw_plans.py BIN {' '.join(sys.argv[2:])}")
    print(f"  drawn-{seed}:\n    warmup: 4\n    steps: 10\n    cases:")
    for workload in (word for word in rest if "=" not in word):
        for number in range(1, int(plans) + 1):
            base, keys = draw_one(draw, wanted, program, cluster, gpus, workload)
            changes = ", ".join(f"{key}: {flow(value)}" for key, value in keys.items())
            plan = base.removesuffix(".yaml")
            print(f"      - {{workload: {workload}, plans: [{plan}], set: {{{changes}}}, name: drawn-{number}}}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
