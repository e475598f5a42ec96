"""`python -m dcrecord MODEL`: records a workload."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Any

from dcrecord.errors import printable
from dcrecord.graph_file import FORMAT, GRAPH_FILE, check_folder, files_of, to_bytes, write_whole
from dcrecord.options import Reporter
from dcrecord.readme import counts_of, readme_of
from dcrecord.record_options import Request, read_request
from dcrecord.version import VERSION

if TYPE_CHECKING:
    from dcrecord.workload import Workload


def run_record(arguments: list[str], of_file: bool = False) -> int:
    """Records what the command line asks for, and writes the workload's folder.

    of_file   the model is a config.json
    """
    request = read_request(arguments, of_file)
    report = Reporter(lambda line: print(f"dcrecord: {printable(line)}", file=sys.stderr, flush=True))
    check_folder(request.folder)
    for note in request.notes:
        report(note)
    if request.options.backend != "aten":
        from dcrecord.inductor.lowering import check_environment

        check_environment()
    started = time.monotonic()
    document, compiled = make_documents(request, report)
    data = to_bytes(document, compressed=True)
    write_whole(request.folder / GRAPH_FILE, data)
    readme = request.folder / "README.md"
    if not readme.exists():
        write_whole(readme, readme_of(document).encode())
    seconds = time.monotonic() - started
    report(f"wrote {request.folder / GRAPH_FILE}: {counts_of(document)}, {len(data):,} bytes, {seconds:.0f} s")
    _write_compiled(request, compiled, report)
    return 0


def _write_compiled(request: Request, compiled: dict[str, dict[str, Any]], report: Reporter) -> None:
    """Writes the compiled forms; one of an earlier recording that this one has not made again goes."""
    for name, file in files_of(request.options.backend).items():
        path = request.folder / file
        if name in compiled:
            data = to_bytes(compiled[name], compressed=True)
            write_whole(path, data)
            report(f"wrote {path}: {counts_of(compiled[name])}, {len(data):,} bytes")
        elif path.exists():
            path.unlink()
            report(f"removed {path}, which is of an earlier recording")


def make_documents(request: Request, report: Reporter) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The document that describes the workload, and by name those of its compiled forms."""
    from dcrecord.recording import record_forms

    report(f"building {request.name}")
    workload = _workload(request)
    recorder = {
        "dcrecord": VERSION,
        "torch": version_of("torch").partition("+")[0],
        "transformers": version_of("transformers"),
        "command": request.command,
    }
    document, compiled = record_forms(workload, request.options, report)
    head = {"format": FORMAT, "name": request.name}
    compiling = {**recorder, "command": request.compiling_command}
    return {**head, "recorder": recorder, **document}, {
        name: {**head, "recorder": compiling, **form} for name, form in compiled.items()
    }


def _workload(request: Request) -> Workload:
    if request.architecture is not None:
        from dcrecord.model_workloads import model_workload

        return model_workload(request.architecture, request.options)
    from dcrecord.module_file import file_workload

    return file_workload(request.model, request.name, request.options, request.vocabularies)
