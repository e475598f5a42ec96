"""`python -m dcrecord MODEL`: records a workload."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

from dcrecord.graph_file import FORMAT, GRAPH_FILE, check_folder, to_bytes, write_whole
from dcrecord.options import Reporter
from dcrecord.readme import counts_of, readme_of
from dcrecord.record_options import Request, read_request
from dcrecord.version import VERSION

if TYPE_CHECKING:
    from dcrecord.workload import Workload


def run_record(arguments: list[str]) -> int:
    """Records what the command line asks for, and writes the workload's folder."""
    request = read_request(arguments)
    report = Reporter(lambda line: print(f"dcrecord: {line}", file=sys.stderr, flush=True))
    check_folder(request.folder)
    started = time.monotonic()
    document = make_document(request, report)
    data = to_bytes(document, compressed=True)
    write_whole(request.folder / GRAPH_FILE, data)
    readme = request.folder / "README.md"
    if not readme.exists():
        write_whole(readme, readme_of(document).encode())
    seconds = time.monotonic() - started
    report(f"wrote {request.folder / GRAPH_FILE}: {counts_of(document)}, {len(data):,} bytes, {seconds:.0f} s")
    return 0


def make_document(request: Request, report: Reporter) -> dict[str, Any]:
    """The document that describes the workload."""
    from dcrecord.recording import record

    report(f"building {request.name}")
    workload = _workload(request)
    recorder = {
        "dcrecord": VERSION,
        "torch": version_of("torch").partition("+")[0],
        "transformers": version_of("transformers"),
        "command": request.command,
    }
    return {"format": FORMAT, "name": request.name, "recorder": recorder, **record(workload, request.options, report)}


def _workload(request: Request) -> Workload:
    if request.architecture is not None:
        from dcrecord.named_models import named_workload

        return named_workload(request.architecture, request.options)
    from dcrecord.module_file import file_workload

    return file_workload(request.model, request.name, request.options, request.vocabularies)
