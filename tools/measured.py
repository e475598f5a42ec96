#!/usr/bin/env python3
"""The measured results of workloads, in packs (docs/reference/formats.md, Packs of results).

    tools/measured.py add                   takes what dc-run measured, traces/WORKLOAD/measured/CLUSTER/NAME.json.gz, into the
                                            pack beside that folder, CLUSTER.jsonl.xz, and removes these files. A result of
                                            the same name is replaced. Timelines stay files
    tools/measured.py list [WORKLOAD...]    the results in packs, as `dc-sim compare` takes them
    tools/measured.py extract PACK:NAME     prints a result
    tools/measured.py check                 fails where packs and manifests differ, or a result is in no pack

manifest.txt beside the packs has a line for each result: cluster, name, first 16 digits of the SHA-256 of its line in the
pack. It shows in a diff which results a commit changes.
"""
import argparse
import gzip
import hashlib
import json
import lzma
import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TRACES = SOURCE / "traces"
ENDING = ".jsonl.xz"


def cluster_of(pack):
    return pack.name.removesuffix(ENDING)


def packs(traces=TRACES, workload="*"):
    return sorted(traces.glob(f"{workload}/measured/*{ENDING}"))


def plain_results(traces):
    """Results that are in no pack."""
    files = [*traces.glob("*/measured/*/*.json.gz"), *traces.glob("*/measured/*/*.json")]
    return sorted(file for file in files if ".timeline.json" not in file.name)


def line_of(name, result):
    return json.dumps({"name": name, "result": result}, separators=(",", ":"), ensure_ascii=False)


def lines_of(pack):
    """The lines of a pack by name, in their order."""
    lines = lzma.decompress(pack.read_bytes()).decode().splitlines() if pack.exists() else []
    return {json.loads(line)["name"]: line for line in lines}


def pack_text(lines):
    return "".join(f"{lines[name]}\n" for name in sorted(lines))


def manifest_text(folder):
    rows = [(cluster_of(pack), name, hashlib.sha256(line.encode()).hexdigest()[:16])
            for pack in sorted(folder.glob(f"*{ENDING}")) for name, line in lines_of(pack).items()]
    return "".join(" ".join(row) + "\n" for row in rows)


def read_plain(file):
    data = file.read_bytes()
    try:
        result = json.loads(gzip.decompress(data) if file.name.endswith(".gz") else data)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        sys.exit(f"measured.py: {file}: {error}")
    if not isinstance(result, dict) or (result.get("format"), result.get("origin")) != ("dc-result/1", "measured"):
        sys.exit(f"measured.py: {file}: expected a dc-result/1 whose origin is \"measured\"")
    return result


def add(traces):
    files = plain_results(traces)
    new = {}
    for file in files:
        name = file.name.removesuffix(".gz").removesuffix(".json")
        new.setdefault(file.parent.with_name(file.parent.name + ENDING), {})[name] = line_of(name, read_plain(file))
    for pack, lines in new.items():
        # One plan is much like the next, and xz looks back 8 MiB; gzip, 32 KiB.
        pack.write_bytes(lzma.compress(pack_text(lines_of(pack) | lines).encode(), preset=6 | lzma.PRESET_EXTREME))
    for folder in {pack.parent for pack in new}:
        (folder / "manifest.txt").write_text(manifest_text(folder))
    for file in files:
        file.unlink()
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
    print(f"{len(files)} results into {len(new)} packs")


def show(traces, workloads):
    for workload in workloads or ["*"]:
        found = packs(traces, workload)
        if not found:
            sys.exit(f"measured.py: {workload}: no workload of {traces} with measured results")
        for pack in found:
            print("".join(f"{pack}:{name}\n" for name in lines_of(pack)), end="")


def extract(asked):
    pack, colon, name = asked.partition(f"{ENDING}:")
    lines = lines_of(pathlib.Path(pack + ENDING)) if colon else {}
    if name not in lines:
        sys.exit(f"measured.py: {asked}: no such result")
    print(json.dumps(json.loads(lines[name])["result"], indent=1))


def faults(traces):
    for file in plain_results(traces):
        yield f"{file}: in no pack; run tools/measured.py add"
    for pack in packs(traces):
        lines = lines_of(pack)
        normal = {name: line_of(name, json.loads(line)["result"]) for name, line in lines.items()}
        if lzma.decompress(pack.read_bytes()).decode() != pack_text(normal):
            yield f"{pack}: not as tools/measured.py writes it: a line for each result, sorted by name"
    for folder in sorted({pack.parent for pack in packs(traces)}):
        manifest = folder / "manifest.txt"
        if not manifest.exists() or manifest.read_text() != manifest_text(folder):
            yield f"{manifest}: expected what the packs hold"


def check(traces):
    found = list(faults(traces))
    print("\n".join(found) or f"{len(packs(traces))} packs: as their manifests say")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=pathlib.Path, default=TRACES, help="folder of workloads")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("add").set_defaults(run=lambda options: add(options.traces))
    listing = commands.add_parser("list")
    listing.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    listing.set_defaults(run=lambda options: show(options.traces, options.workloads))
    extracting = commands.add_parser("extract")
    extracting.add_argument("result", metavar="PACK:NAME")
    extracting.set_defaults(run=lambda options: extract(options.result))
    commands.add_parser("check").set_defaults(run=lambda options: check(options.traces))
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
