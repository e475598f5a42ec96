"""`python -m dcrecord lower WORKLOAD`: what Inductor runs in place of a running job's recorded graphs."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from dcrecord.errors import RecorderError, printable
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, check_folder, read_document, to_bytes, write_whole
from dcrecord.option_parser import OptionParser
from dcrecord.options import Reporter
from dcrecord.readme import counts_of
from dcrecord.version import VERSION

TARGET = "zero3"

_DESCRIPTION = f"""\
Lowers the graphs of a job that dcsim_deepspeed.record wrote, with Inductor and without a GPU, and writes
WORKLOAD/{COMPILED_FILES[TARGET]}, by which dc-sim predicts the compiled job. dcsim_deepspeed.record calls it.
Workloads that dcrecord made itself are recorded with --backend inductor instead.
"""
_EXAMPLES = """\
example:
  python -m dcrecord lower my-job

exit codes: 0 done; 2 bad input, or what Inductor has no answer to; 3 a file cannot be read or written
"""


def lower_parser() -> OptionParser:
    """The options of lowering."""
    parser = OptionParser(prog="python -m dcrecord lower", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("workload", metavar="WORKLOAD", help=f"folder with the {GRAPH_FILE} of a running job")
    return parser


def run_lower(arguments: list[str]) -> int:
    """Lowers as the command line asks, and writes the result."""
    folder = Path(lower_parser().read(arguments).workload)
    check_folder(folder)
    report = Reporter(lambda line: print(f"dcrecord: {printable(line)}", file=sys.stderr, flush=True))
    document = read_document(folder / GRAPH_FILE)
    started = time.monotonic()
    form = form_of(document, f"python -m dcrecord lower {folder}")
    path = folder / COMPILED_FILES[TARGET]
    data = to_bytes(form, compressed=True)
    write_whole(path, data)
    report(f"wrote {path}: {counts_of(form)}, {len(data):,} bytes, {time.monotonic() - started:.0f} s")
    return 0


def form_of(document: dict[str, Any], command: str) -> dict[str, Any]:
    """The document of the compiled form. Throws RecorderError where there is none."""
    from dcrecord.inductor.lowering import TARGETS, check_environment
    from dcrecord.inductor.record import compiled_again

    check_environment()
    recorder = document.get("recorder", {})
    if "deepspeed" not in recorder or "backend" in document:
        raise RecorderError(
            f"{document.get('name', 'this workload')} was not recorded of a running job: expected a workload that "
            "dcsim_deepspeed.record wrote; record others with --backend inductor"
        )
    torch = version_of("torch").partition("+")[0]
    if recorder["torch"] != torch:
        raise RecorderError(f"the job ran torch {recorder['torch']}: expected {torch}, which is here")
    target = next(each for each in TARGETS if each.name == TARGET)
    lowered = compiled_again(document, target)
    lowered["backend"]["deepspeed"] = recorder["deepspeed"]
    head = {key: document[key] for key in ("format", "name")}
    made_by = {**recorder, "dcrecord": VERSION, "command": command}
    return {**head, "recorder": made_by, **{key: document[key] for key in ("options", "tokens")}, **lowered}
