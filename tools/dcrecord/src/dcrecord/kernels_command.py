"""`python -m dcrecord kernels WORKLOAD`: the programs of a workload's compiled forms for their GPU."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from dcrecord.errors import RecorderError
from dcrecord.graph_file import COMPILED_FILES, LAYERS_FILES, check_folder, read_document, to_bytes, write_whole
from dcrecord.option_parser import OptionParser
from dcrecord.options import Reporter
from dcrecord.version import VERSION

KERNELS_FORMAT = "dc-kernels/1"
KERNELS_FILE = "kernels.json.xz"

_DESCRIPTION = f"""\
Compiles the Triton kernels of a workload's compiled forms for the GPU that they were recorded for, without one, and writes
WORKLOAD/{KERNELS_FILE}, by which dc-run launches them: docs/reference/formats.md, dc-kernels/1.
"""
_EXAMPLES = """\
example:
  python -m dcrecord kernels traces/llama-3.2-1b

exit codes: 0 done; 2 bad input; 3 a file cannot be read or written
"""


def kernels_parser() -> OptionParser:
    """The options of compiling kernels."""
    parser = OptionParser(prog="python -m dcrecord kernels", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("workload", metavar="WORKLOAD", help=f"folder with {' or '.join(COMPILED_FILES.values())}")
    return parser


def run_kernels(arguments: list[str]) -> int:
    """Compiles as the command line asks, and writes the result."""
    asked = kernels_parser().read(arguments)
    folder = Path(asked.workload)
    check_folder(folder)
    report = Reporter(lambda line: print(f"dcrecord: {line}", file=sys.stderr, flush=True))
    document = kernels_of(read_forms(folder), report)
    out = folder / KERNELS_FILE
    write_whole(out, to_bytes(document, compressed=True))
    count = len({entry["hash"] for entry in document["kernels"]})
    report(f"wrote {out}: {count} kernels in {len(document['kernels'])} configurations for {document['architecture']}")
    return 0


def read_forms(folder: Path) -> list[dict[str, Any]]:
    """The compiled forms in a workload's folder."""
    files = [*COMPILED_FILES.values(), *LAYERS_FILES.values()]
    forms = [read_document(folder / file) for file in files if (folder / file).is_file()]
    if not forms:
        raise RecorderError(
            f"'{folder}' has no {' and no '.join(COMPILED_FILES.values())}: expected a workload that "
            "`python -m dcrecord ... --backend inductor` recorded"
        )
    return forms


def kernels_of(forms: list[dict[str, Any]], report: Reporter) -> dict[str, Any]:
    """The document for all kernels of these forms, each once."""
    from dcrecord.inductor.cubins import compile_kernel
    from dcrecord.inductor.no_gpu import ARCHITECTURE

    for form in forms:
        _check_backend(form["backend"], {"triton": version_of("triton"), "architecture": ARCHITECTURE})
    kernels = {kernel["hash"]: kernel for form in forms for kernel in form["kernels"]}
    report(f"compiling {len(kernels)} kernels for {ARCHITECTURE}")
    return {
        "format": KERNELS_FORMAT,
        "workload": forms[0]["name"],
        "recorder": {"dcrecord": VERSION, "triton": version_of("triton")},
        "architecture": ARCHITECTURE,
        "kernels": [entry for kernel in kernels.values() for entry in compile_kernel(kernel)],
    }


def _check_backend(recorded: dict[str, Any], own: dict[str, str]) -> None:
    for key, value in own.items():
        if recorded[key] != value:
            raise RecorderError(f"the compiled form was recorded for {key} {recorded[key]}: expected {value}, which is here")
