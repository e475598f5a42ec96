"""Documents of every format: what dc-sim writes, what is committed."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import random
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs/reference/schemas"
TRACES = ROOT / "traces"
# Drawn from more than a hundred profiles and packs.
PROFILES = 8
PACKS = 30

H200_8 = "--cluster h200-8"
TINY = f"traces/tiny-llama {H200_8}"
MLP = "tests/data/sizes/mlp-2x64"
# Schema, what it shows, words behind dc-sim, of which F is the file that is checked.
WRITTEN = [
    ("result", "fits", f"simulate {TINY} --plan zero3 --json F"),
    ("result", "eager", f"simulate {TINY} --plan zero2-eager --json F"),
    ("result", "compiled", f"simulate {TINY} --plan zero3-deepcompile-gathers-only --json F"),
    ("result", "roofline, no bound", "simulate traces/tiny-llama --cluster tests/golden/simulate-hand-cluster/cluster.yaml --plan zero1 --json F"),
    ("result", "stops", "simulate traces/gpt2 --cluster h200-1 --cluster-set gpu.memory=4GB --plan zero1 --json F"),
    ("result", "never starts", "simulate traces/gpt2 --cluster h200-1 --cluster-set gpu.memory=3GB --plan zero1 --json F"),
    ("result", "pins too much", f"simulate traces/gpt2 {H200_8} --cluster-set pinned_memory=1GiB --plan zero3 --set offload_optimizer=all --json F"),
    ("plan", "events", f"simulate {TINY} --plan zero3-deepcompile --save-plan F"),
    ("plan", "gathers", f"simulate {TINY} --plan zero3-ahead --save-plan F"),
    ("plan", "activations", f"simulate traces/gpt2 {H200_8} --plan zero3-deepcompile --set 'passes=[zero3_compile, offload_activation_floor]' --save-plan F"),
    ("plan", "states", f"simulate traces/gpt2 {H200_8} --plan zero3 --set offload_optimizer=all --save-plan F"),
    ("plan", "shards", f"simulate traces/gpt2 {H200_8} --plan zero3-deepcompile --set offload_parameters=true --save-plan F"),
    ("plan", "eager", f"simulate traces/gpt2 {H200_8} --plan zero2-eager --set overlap_comm=true --save-plan F"),
    ("collectives", "ZeRO-3", f"simulate {TINY} --plan zero3 --save-collectives F"),
    ("collectives", "ZeRO-1", f"simulate {TINY} --plan zero1 --save-collectives F"),
    ("timeline", "completes", f"simulate {TINY} --plan zero3 --timeline F"),
    ("timeline", "copy engines", "simulate traces/tiny-llama --cluster h200-2 --plan zero3-copy-engine --timeline F"),
    ("timeline", "stops", "simulate traces/gpt2 --cluster h200-1 --cluster-set gpu.memory=4GB --plan zero1 --timeline F"),
    ("fit", "fits", f"fit {MLP} --cluster h200-4 --plan zero1-eager --set gradient_accumulation_steps=2 --no-record --json F"),
    ("fit", "does not fit", f"fit {MLP}-batch16 --cluster h200-4 --plan zero3 --cluster-set 'gpu.memory=2.3 GB' --no-record --json F"),
    ("sweep", "values and plans", f"sweep {TINY} --plan zero3 --plan zero1-eager --vary gpus=2,8 --json F"),
    ("sweep", "out of memory", "sweep traces/gpt2 --cluster h200-1 --plan zero1 --vary 'cluster.gpu.memory=3 GB,4 GB,80 GB' --json F"),
    ("search", "finds", f"search {TINY} --schedules 200 --json F"),
    ("search", "nothing fits", f"search {TINY} --memory-limit 1MiB --schedules 50 --json F"),
    ("search", "expandable", f"search {TINY} --space configs/spaces/expandable.yaml --schedules 100 --json F"),
    ("launches", "searched", f"search {TINY} --space configs/spaces/deepspeed.yaml --schedules 200 --save-deepspeed-plan F"),
    ("explanation", "completes", f"explain {TINY} --plan zero3 --json F"),
    ("explanation", "tied", "explain traces/gpt2 --cluster h200-4 --plan zero3-deepcompile-gathers-only --set backend=aten --json F"),
    ("explanation", "stops", "explain traces/gpt2 --cluster h200-1 --cluster-set gpu.memory=4GB --plan zero1 --json F"),
    ("comparison", "packs", "compare traces/tiny-llama/measured --cluster h200-1 --json F"),
    ("beside", "ZeRO-1", "simulate traces/llama-3.2-1b-cudnn --cluster h200-1 --plan zero1-deepcompile --beside tests/data/kineto/llama-3.2-1b-zero1.json.gz --json F"),
    ("beside", "steps", f"simulate {TINY} --plan zero3 --beside tests/golden/simulate-beside/steps.json --json F"),
    ("cluster", "asked for", "cluster new --gpus-per-node 8 --gpu a100 --hop-latency 1us --latency 7us --nodes 1 --bandwidth '230 GB/s' --out F"),
]


def dc_sim() -> Path:
    """The program that is tested; DCSIM_BIN names its folder."""
    return Path(os.environ.get("DCSIM_BIN", ROOT / "build/dev/bin")) / "dc-sim"


def _scalar(node: yaml.ScalarNode) -> Any:
    """As dc-sim reads scalars: those of YAML 1.2's JSON schema, in which 500e6 is a number and 0x10 a text."""
    text = node.value
    if node.style:  # quotes
        return text
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text) else text


def _json_form(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {key.value: _json_form(value) for key, value in node.value}
    return [_json_form(value) for value in node.value] if isinstance(node, yaml.SequenceNode) else _scalar(node)


def read(file: Path) -> Any:
    """The JSON form of a JSON or YAML file, which may be compressed by gzip or xz."""
    data = file.read_bytes()
    opened = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(file.suffix, bytes)
    text = opened(data).decode()
    return json.loads(text) if text.startswith(("{", "[")) else _json_form(yaml.compose(text, Loader=yaml.CSafeLoader))


@cache
def written(words: str, folder: Path) -> Any:
    """What dc-sim writes as F; `words` are those of a shell."""
    file = folder / f"document-{len(list(folder.iterdir()))}.json"
    environment = dict(os.environ, PATH=f"{dc_sim().resolve().parent}:{os.environ['PATH']}")
    words = re.sub(r"\bF$", str(file), words)
    done = subprocess.run(["sh", "-c", f"dc-sim {words}"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    # 1: it is written what there is of a step that does not fit.
    assert done.returncode in (0, 1), done.stderr
    return read(file)


def _files(pattern: str) -> Iterator[tuple[str, Any]]:
    for file in sorted(ROOT.glob(pattern)):
        yield str(file.relative_to(ROOT)), read(file)


def _profiles() -> Iterator[tuple[str, Any]]:
    every = sorted(TRACES.glob("*/profile-*.json.xz"))
    for file in random.Random(1).sample(every, PROFILES):
        yield str(file.relative_to(ROOT)), read(file)


def _pack_lines() -> Iterator[tuple[str, Any]]:
    for pack in random.Random(1).sample(sorted(TRACES.glob("*/measured/*.jsonl.xz")), PACKS):
        for number, line in enumerate(lzma.decompress(pack.read_bytes()).decode().splitlines(), start=1):
            yield f"{pack.relative_to(ROOT)}:{number}", json.loads(line)


# By schema: the committed documents. Every committed graph is checked by the recorder's tests.
COMMITTED = {
    "cluster": lambda: _files("configs/clusters/*.yaml"),
    "gpu": lambda: _files("configs/gpus/*.yaml"),
    "plan-spec": lambda: _files("configs/plans/*.yaml"),
    "plan": lambda: _files("traces/*/plans/*/*.json.gz"),
    "space": lambda: _files("configs/spaces/*.yaml"),
    "suites": lambda: _files("configs/suites/*.yaml"),
    "graph": lambda: _files("traces/tiny-llama/graph*.json.xz"),
    "kernels": lambda: _files("traces/tiny-llama/kernels.json.xz"),
    "reference": lambda: _files("traces/*/reference.json"),
    "timeline": lambda: _files("traces/*/measured/*/*.timeline.json.gz"),
    "profile": _profiles,
    "pack-line": _pack_lines,
}
