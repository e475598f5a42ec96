"""Records what PyTorch's CUDA caching allocator does, as the oracle of the replay in sim/memory.

    python3 tools/oracles/record_allocator.py --out tests/data/allocator

needs one idle NVIDIA GPU and torch 2.11, and takes two to three minutes. Each configuration of the
allocator gets a process of its own and a file `<name>.json.gz`; docs/design/memory.md describes the file.
A script that fails is reported and left out; the exit code is then 1.
"""

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

MIB = 1 << 20
STREAMS = 4

# Settings of the allocator, kinds of scripts in turn, number of scripts, operations in each.
CONFIGS = {
    "default": ("", "mixed", 40, 500),
    "expandable": ("expandable_segments:True", "mixed", 40, 500),
    "split-and-collect": (
        "max_split_size_mb:64,garbage_collection_threshold:0.6",
        "pressure",
        10,
        400,
    ),
    "rounding": ("roundup_power2_divisions:8", "mixed", 6, 400),
    "large-segments": ("large_segment_size_mb:40", "mixed", 6, 400),
    "expandable-large-segments": (
        "expandable_segments:True,large_segment_size_mb:40",
        "mixed",
        6,
        400,
    ),
    "driver-limit": ("", "driver", 5, 400),
    "driver-limit-expandable": ("expandable_segments:True", "driver", 5, 400),
}
BUDGET_S = {"default": 40, "expandable": 40}  # no new script is begun after this long
OTHER_BUDGET_S = 10
CHILD_TIMEOUT_S = 90


def main():
    arguments = parse_arguments()
    if arguments.only:
        sys.exit(record_config(arguments.only, arguments.out))
    failed = [name for name in CONFIGS if not run_child(name, arguments.out)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the answers")
    parser.add_argument("--only", choices=CONFIGS, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(name, out):
    """Records one configuration in a process of its own. Returns True if all scripts succeeded."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_ALLOC_CONF")}
    if CONFIGS[name][0]:
        environment["PYTORCH_ALLOC_CONF"] = CONFIGS[name][0]
    command = [sys.executable, __file__, "--out", str(out), "--only", name]
    begin = time.monotonic()
    try:
        code = subprocess.run(command, env=environment, timeout=CHILD_TIMEOUT_S).returncode
    except subprocess.TimeoutExpired:
        code = "timeout"
    print(f"{name}: exit {code} after {time.monotonic() - begin:.1f} s", flush=True)
    return code == 0


def record_config(name, out):
    """Runs the scripts of one configuration and writes its file. Returns the exit code."""
    from allocator_gpu import Gpu

    settings, kind, count, max_ops = CONFIGS[name]
    gpu = Gpu(STREAMS)
    answers = {
        "format": "dc-allocator-oracle/1",
        "name": name,
        "settings": settings,
        "gpu": gpu.name,
        "device_bytes": gpu.total_bytes,
        "versions": gpu.versions,
        "streams": STREAMS,
        "scripts": [],
    }
    failures = 0
    begin = time.monotonic()
    for seed in range(count):
        if time.monotonic() - begin > BUDGET_S.get(name, OTHER_BUDGET_S):
            print(f"{name}: out of time after {seed} of {count} scripts", flush=True)
            break
        try:
            answers["scripts"].append(record_script(gpu, kind, seed, max_ops))
        except Exception:
            print(f"{name}: script {seed} failed\n{traceback.format_exc()}", flush=True)
            failures += 1
        if seed % 10 == 9:
            write_answers(out / f"{name}.json.gz", answers)
    write_answers(out / f"{name}.json.gz", answers)
    print_summary(name, answers["scripts"])
    return 1 if failures else 0


def record_script(gpu, kind, seed, max_ops):
    """Runs one script from an empty allocator to an empty allocator. Returns its record."""
    import allocator_scripts as scripts

    rng = random.Random(f"{kind}/{seed}")
    turns = {
        "mixed": ["random_mix", "training", "stream_use", "memory_pressure"],
        "pressure": ["memory_pressure"],
        "driver": ["memory_pressure"],
    }[kind]
    generator = turns[seed % len(turns)]
    limit = driver = None
    if generator == "memory_pressure":
        room_bytes = rng.choice([128, 300, 777, 1500, 3000]) * MIB + rng.randrange(MIB)
        limit, driver = (None, room_bytes + 256 * MIB) if kind == "driver" else (room_bytes, None)
    session = scripts.Session(gpu, max_ops, limit, driver)
    try:
        getattr(scripts, generator)(session, rng)
        record = session.close()
    except Exception:
        session.abandon()
        raise
    finally:
        gpu.finish()
    return {
        "name": f"{generator}-{seed}",
        "memory_limit_bytes": session.limit_bytes,
        "capacity_bytes": session.capacity_bytes,
        "forced_drains": session.forced_drains,
        **record,
    }


def write_answers(path, answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answers, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def print_summary(name, scripts):
    ops = sum(len(script["ops"]) for script in scripts)
    retries = sum(sum(script["stats"]["retries"]) for script in scripts)
    ooms = sum(sum(script["stats"]["ooms"]) for script in scripts)
    tasks = sum(op[0] == "i" for script in scripts for op in script["ops"])
    drains = sum(script["forced_drains"] for script in scripts)
    print(
        f"{name}: {len(scripts)} scripts, {ops} operations, {retries} retries, {ooms} refused, "
        f"{tasks} tasks, {drains} forced drains",
        flush=True,
    )


if __name__ == "__main__":
    main()
