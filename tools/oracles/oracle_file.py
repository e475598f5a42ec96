"""Files of what the installed DeepSpeed decides: options of the scripts that record them, writing,
and comparing with what was written before."""

import argparse
import gzip
import json
from pathlib import Path

import deepspeed
import torch

ROOT = Path(__file__).resolve().parents[2]
VERSION = deepspeed.__version__.split("+")[0]


def parse_options(description, workloads):
    parser = argparse.ArgumentParser(description=description.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, help="folder to write to")
    parser.add_argument("--check", type=Path, help="folder to compare with")
    parser.add_argument("--random", type=int, default=320, help="random graphs of each kind")
    parser.add_argument("--workloads", nargs="*", default=workloads)
    return parser.parse_args()


def write(path, form, members):
    """A document of this format: DeepSpeed's and torch's versions, and the members."""
    versions = {"deepspeed": VERSION, "torch": torch.__version__.split("+")[0]}
    text = json.dumps({"format": form, "versions": versions, **members}, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def differing(kind, again, written):
    """"<kind> <number>" of each row recorded again that is not as it was written."""
    return [f"{kind} {i}" for i, row in enumerate(again)
            if json.loads(json.dumps(row)) != written[i]]


def check(path, find_differing):
    """Prints what find_differing(document) names; 0 if that is nothing."""
    found = find_differing(json.loads(gzip.decompress(path.read_bytes())))
    print(f"{path.name}: {', '.join(found) or 'DeepSpeed decides the same'}")
    return 1 if found else 0
