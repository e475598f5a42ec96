"""`python -m dcrecord reference WORKLOAD`: losses and gradients of the reference training."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version as version_of
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcrecord.errors import RecorderError, did_you_mean
from dcrecord.graph_file import FORMAT, GRAPH_FILE, check_folder, graph_hash, parse_document, read_text, to_bytes, write_whole
from dcrecord.option_parser import OptionParser, one_of, whole_number
from dcrecord.options import Reporter
from dcrecord.version import VERSION

if TYPE_CHECKING:
    import torch

    from dcrecord.reference_training import Step

REFERENCE_FORMAT = "dc-reference/1"
REFERENCE_FILE = "reference.json"

_DESCRIPTION = """\
Runs a recorded graph with PyTorch, from seeded weights and inputs, and trains with AdamW. Writes per step the loss and
for each gradient its norm, a hash and 16 projections: docs/reference/formats.md, dc-reference/1.
"""
_EXAMPLES = """\
examples:
  python -m dcrecord reference traces/tiny-llama
  python -m dcrecord reference traces/llama-3.2-1b --device cuda --steps 3 --ranks 2 -o reference-2-ranks.json

exit codes: 0 done; 2 bad input; 3 no GPU, or a file cannot be read or written
"""


def reference_parser() -> OptionParser:
    """The options of a reference training."""
    parser = OptionParser(prog="python -m dcrecord reference", description=_DESCRIPTION, epilog=_EXAMPLES)
    add = parser.add_argument
    add("workload", metavar="WORKLOAD", help=f"folder with {GRAPH_FILE}, or a graph file")
    add("--steps", type=whole_number(1), default=5, metavar="N", help="optimizer steps (5)")
    add("--accumulation", type=whole_number(1), default=1, metavar="N", help="micro-steps of a step on each rank (1)")
    add("--ranks", type=whole_number(1), default=1, metavar="N", help="data-parallel ranks, simulated one by one (1)")
    add("--seed", type=whole_number(0), default=0, metavar="N", help="of weights, inputs and projections (0)")
    add("--device", type=one_of(("cpu", "cuda")), default="cpu", metavar="D", help="cpu or cuda (cpu)")
    add("-o", "--out", metavar="FILE", help=f"result ({REFERENCE_FILE} in the workload's folder)")
    return parser


def run_reference(arguments: list[str]) -> int:
    """Trains as the command line asks, and writes the result."""
    asked = reference_parser().read(arguments)
    graph_path = find_graph(Path(asked.workload))
    out = Path(asked.out) if asked.out else graph_path.parent / REFERENCE_FILE
    check_folder(out.parent)
    text = read_text(graph_path)
    document = parse_document(text, graph_path)
    if document.get("format") != FORMAT:
        raise RecorderError(f"{graph_path} has format {document.get('format')!r}: expected {FORMAT!r}")
    report = Reporter(lambda line: print(f"dcrecord: {line}", file=sys.stderr, flush=True))
    result = {**header_of(document, text, asked), "steps": train(document, asked, report)}
    write_whole(out, to_bytes(result, compressed=out.name.endswith(".xz"), indented=True))
    report(f"wrote {out}: loss {result['steps'][0]['loss']:.6f} to {result['steps'][-1]['loss']:.6f}")
    return 0


def find_graph(workload: Path) -> Path:
    """The graph file that WORKLOAD names."""
    if workload.is_file():
        return workload
    for name in (GRAPH_FILE, GRAPH_FILE.removesuffix(".xz")):
        if (workload / name).is_file():
            return workload / name
    parent = workload.absolute().parent
    neighbours = [path.parent.name for path in parent.glob(f"*/{GRAPH_FILE}")] if parent.is_dir() else []
    problem = f"has no {GRAPH_FILE}" if workload.is_dir() else "is no folder and no file"
    nearest = did_you_mean(workload.name, neighbours)
    raise RecorderError(f"'{workload}' {problem}{nearest}: expected a workload that `python -m dcrecord` recorded")


def train(document: dict[str, Any], asked: argparse.Namespace, report: Reporter) -> list[dict[str, Any]]:
    """The result's steps."""
    from dcrecord.reference_training import ReferenceTraining, Settings

    settings = Settings(asked.steps, asked.accumulation, asked.ranks, asked.seed)
    device = _device(asked.device)
    started = time.monotonic()
    steps = []
    with _deterministic():
        training = ReferenceTraining(document, settings, device)
        for number in range(settings.steps):
            step = training.run(number, report)
            _check_finite(step, document, number)
            steps.append(_step_entry(step, document, settings.seed))
            left = (time.monotonic() - started) / (number + 1) * (settings.steps - number - 1)
            report(f"step {number}: loss {step.loss:.6f}" + (f", about {left:.0f} s left" if left >= 3 else ""))
    return steps


def _check_finite(step: Step, document: dict[str, Any], number: int) -> None:
    """JSON has no infinities, and nothing can be compared with them."""
    problems = [] if isfinite(step.loss) else ["the loss"]
    names = (document["params"][param]["name"] for param, gradient in step.gradients.items() if not gradient.isfinite().all())
    problems += [f"the gradient of {name}" for name in names]
    if problems:
        raise RecorderError(f"step {number}: {problems[0]} is not finite: expected a workload that trains in its dtype")


def _device(name: str) -> torch.device:
    import torch

    if name == "cuda" and not torch.cuda.is_available():
        raise OSError("--device cuda: no CUDA GPU here, expected one")
    return torch.device(name, 0) if name == "cuda" else torch.device(name)


@contextmanager
def _deterministic() -> Iterator[None]:
    """Inside, the same numbers each time. The setting is the process's, and Inductor pads nothing under it."""
    import torch

    algorithms = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fills = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(algorithms[0], warn_only=algorithms[1])
        torch.utils.deterministic.fill_uninitialized_memory = fills


def header_of(document: dict[str, Any], text: bytes, asked: argparse.Namespace) -> dict[str, Any]:
    """What comes before the steps; `text` is the graph file, uncompressed."""
    from dcrecord.reference_training import AdamW

    words = ["python -m dcrecord reference", f"traces/{document['name']}", f"--steps {asked.steps}"]
    words += [f"--accumulation {asked.accumulation}", f"--ranks {asked.ranks}", f"--seed {asked.seed}"]
    return {
        "format": REFERENCE_FORMAT,
        "workload": document["name"],
        "graph": graph_hash(text),
        "recorder": {
            "dcrecord": VERSION,
            "torch": version_of("torch").partition("+")[0],
            "command": " ".join([*words, f"--device {asked.device}"]),
        },
        "device": asked.device,
        "seed": asked.seed,
        "ranks": asked.ranks,
        "accumulation": asked.accumulation,
        "optimizer": asdict(AdamW()),
    }


def _step_entry(step: Step, document: dict[str, Any], seed: int) -> dict[str, Any]:
    """The step's numbers. Fingerprints take longer than the step, so each core makes some."""
    from dcrecord.fingerprint import fingerprint

    def entry(item: tuple[int, torch.Tensor]) -> dict[str, Any]:
        param, gradient = item
        name = document["params"][param]["name"]
        return {"param": param, "name": name, **fingerprint(gradient.cpu().numpy(), name, seed).to_json()}

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
        gradients = list(workers.map(entry, step.gradients.items()))
    return {"loss": step.loss, "losses": step.losses, "gradients": gradients}
