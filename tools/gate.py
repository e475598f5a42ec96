#!/usr/bin/env python3
"""Whether a change of the code changed a number, a schedule or a search.

    tools/gate.py BIN [PART...]                 compares with the hashes of tests/gate.txt: exit code 1 where one differs
    tools/gate.py BIN --sample SECONDS          the same of parts drawn at random, begun for so long (--seed draws them)
    tools/gate.py BIN [PART...] --update        writes the hashes

BIN is the folder of the built programs (build/dev/bin). A PART is a workload, or one of its parts, WORKLOAD/NAME:

    CLUSTER     what `dc-sim compare --no-host` predicts for each result measured on that cluster
    schedules   the text of the schedule of each plan of configs/plans on h200-4, and of each of the workload's own
    search      the result of a short search with a seed

Names of files do not count, and neither does how fast a search was. All parts take about ten minutes of two cores.
A change that is meant to keep every number keeps every hash. One that is not runs --update and says why they change.
Conflicts in the file end with --update of the workloads in conflict.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import time

from accuracy import SOURCE, cases, compare

HASHES = SOURCE / "tests" / "gate.txt"
TITLE = "# Hashes of predictions, schedules and searches. Written by tools/gate.py --update."
# Schedules to search, so that each takes one to three seconds.
SEARCHES = {"tiny-llama": 3000, "mlp-8x4096": 2000, "gpt2": 600, "bert-large": 300, "llama-3.2-1b": 300}
# Keys that repeat an input or the program's versions, and that say how fast it was.
REPEATED = {"plan", "cluster", "versions"}
SPEED = {"seconds", "schedules_per_second"}


def output_of(*command):
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"gate.py: {' '.join(map(str, command[:3]))} failed: {done.stderr}")
    return done.stdout


def hash_of(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def without(keys, value):
    """A JSON value without these keys of its objects."""
    if isinstance(value, dict):
        return {key: without(keys, each) for key, each in value.items() if key not in keys}
    return [without(keys, each) for each in value] if isinstance(value, list) else value


def schedules(programs, workload):
    plans = {"h200-4": sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("configs/plans/*.yaml"))}
    for path in sorted(SOURCE.glob(f"traces/{workload}/plans/*/*")):
        plans.setdefault(path.parent.name, []).append(str(path.relative_to(SOURCE)))
    return [output_of(programs / "schedule-hashes", f"traces/{workload}", f"configs/clusters/{cluster}.yaml", *files)
            for cluster, files in plans.items()]


def predictions(programs, cluster, pack):
    pairs = compare(str(programs / "dc-sim"), cluster, pack, "--no-host")
    return sorted(hash_of(without(REPEATED, pair["predicted"])) for pair in pairs)


def search(programs, workload):
    text = output_of(programs / "dc-sim", "search", f"traces/{workload}", "--cluster", "configs/clusters/h200-4.yaml",
                     "--seed", "1", "--schedules", str(SEARCHES[workload]), "--json", "-")
    return without(REPEATED | SPEED, json.loads(text))


def all_parts():
    """The call that gives the value of each part, by workload and name of the part."""
    found = {(path.parent.name, "schedules"): (schedules, path.parent.name)
             for path in SOURCE.glob("traces/*/graph.json.xz")}
    found |= {(pack.split("/")[1], cluster): (predictions, cluster, pack) for cluster, pack in cases()}
    return found | {(name, "search"): (search, name) for name in SEARCHES}


def committed():
    if not HASHES.exists():
        return {}
    lines = [line.split() for line in HASHES.read_text().splitlines() if not line.startswith("#")]
    return {(name, part): value for name, *rest in lines for part, value in (each.split("=") for each in rest)}


def file_text(hashes):
    lines = {}
    for name, part in sorted(hashes):
        lines.setdefault(name, [name]).append(f"{part}={hashes[name, part]}")
    return "".join(f"{line}\n" for line in [TITLE, *map(" ".join, lines.values())])


def hashes_of(programs, parts, seconds):
    """The hash by part: of all parts, or of those that were begun within so many seconds."""
    begun = time.monotonic()

    def hash_part(call):
        if seconds is not None and time.monotonic() > begun + seconds:
            return None
        return hash_of(call[0](programs, *call[1:]))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as cores:
        values = zip(parts, cores.map(hash_part, parts.values()), strict=True)
        return {part: value for part, value in values if value}


def shuffled(parts, seed):
    if seed is None:
        commit = subprocess.run(("git", "rev-parse", "HEAD"), cwd=SOURCE, capture_output=True, text=True, check=False)
        seed = commit.stdout.strip()
    print(f"drawn with --seed '{seed}'")
    drawn = sorted(parts)
    random.Random(seed).shuffle(drawn)
    return {part: parts[part] for part in drawn}


def differences(hashes, known, every):
    for part, value in sorted(hashes.items()):
        if known.get(part) != value:
            yield f"{'/'.join(part)}: {'changed' if part in known else f'not in {HASHES.name}'}"
    for part in sorted(known.keys() - every.keys()):
        yield f"{'/'.join(part)}: in {HASHES.name}, but in the tree no more"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path, metavar="BIN")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--update", action="store_true", help="write the hashes")
    parser.add_argument("--sample", type=float, metavar="SECONDS", help="begin parts for so long")
    parser.add_argument("--seed", help="of the sample; the commit if left out")
    options = parser.parse_intermixed_args()
    every = all_parts()
    for asked in options.parts:
        if not any(asked in (name, f"{name}/{part}") for name, part in every):
            parser.error(f"{asked}: neither a workload of traces nor WORKLOAD/PART")
    parts = {(name, part): call for (name, part), call in every.items()
             if not options.parts or {name, f"{name}/{part}"} & set(options.parts)}
    if options.sample is not None:
        parts = shuffled(parts, options.seed)
    hashes = hashes_of(options.bin.resolve(), parts, options.sample)
    known = committed()
    changes = list(differences(hashes, known, every))
    if options.update:
        HASHES.write_text(file_text({part: value for part, value in (known | hashes).items() if part in every}))
        print(f"{len(changes)} of {len(every)} hashes changed")
        return 0
    print("\n".join(changes) or f"{len(hashes)} of {len(every)} parts: unchanged")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
