"""Which of the committed workloads Inductor lowers, and what each takes.

  tests/recorder/compile_workloads.py run [WORKLOAD...] [--keep DIR] [--seconds N] [--gib N] [--again]
      records each from the command of its graph file, with --backend inductor, in a process of its own, the smallest
      first, and adds a line to docs/lab/compiled_graphs.jsonl. Workloads that have a line are left out but with --again.
      The records go to DIR/WORKLOAD, or nowhere. A process gets N seconds of a core (900) and N GiB (8).
  tests/recorder/compile_workloads.py page
      writes docs/lab/compiled_graphs.md from these lines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from compiled_plausibility import beside
from graph_checker import faults_of

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tools" / "python" / "src"
sys.path.insert(0, str(SOURCES))

from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document  # noqa: E402

TRACES = ROOT / "traces"
LINES = ROOT / "docs" / "lab" / "compiled_graphs.jsonl"
PAGE = LINES.with_suffix(".md")
_REFUSED = re.compile(r"^dcrecord: not compiled(?: for (?P<form>\w+))?, the ATen graph stands(?: alone)?: (?P<reason>.*)$", re.M)


def lines() -> dict[str, dict[str, Any]]:
    """The last line of each workload."""
    found = [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []
    return {line["workload"]: line for line in found}


def page(results: dict[str, dict[str, Any]]) -> str:
    """The page that these lines give."""
    whole = [name for name, result in results.items() if all("launches" in result[form] for form in COMPILED_FILES)]
    older = [f"{name} ({', '.join(result['differ'])})" for name, result in results.items() if "differ" in result]
    rows = "\n".join(_row(results[name]) for name in sorted(results))
    seconds = sorted(result["seconds"] for result in results.values())
    return (
        "# Which workloads Inductor lowers\n\n"
        "`tests/recorder/compile_workloads.py run` records every committed workload from its own command with "
        "`--backend inductor`, without a GPU.\n"
        f"{len(results)} of {len(_names())} are tried: {len(whole)} lower for ZeRO-3 and for ZeRO-1 and 2; "
        "the others run as operators of ATen, for the reason in their row.\n\n"
        f"Files that came out other than they are committed: {', '.join(older) or 'none'}.\n\n"
        f"A recording takes {seconds[len(seconds) // 2]:.0f} s of one core in the middle, {seconds[-1]:.0f} s at most. "
        "Launches are those of Triton kernels, forward and backward; calls those of operators "
        "that Inductor leaves to libraries, views among them; kernels the different ones.\n\n"
        "FLOPs of products, saved bytes and bytes alive at most (peak) are those of the ZeRO-3 form over those of the ATen "
        "graph, of tensors beside parameters, buffers and inputs.\n\n"
        "| workload | ZeRO-3: launches, calls, kernels | ZeRO-1 and 2 | FLOPs, saved, peak | seconds of a core | GiB |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        f"{rows}\n"
    )


def _row(result: dict[str, Any]) -> str:
    cells = [_cell(result[form]) for form in COMPILED_FILES]
    ratios = [result[form]["beside"] for form in COMPILED_FILES if "beside" in result[form]]
    common = ", ".join(f"{ratio:.3f}" for ratio in ratios[0].values()) if ratios else ""
    return f"| {result['workload']} | {cells[0]} | {cells[1]} | {common} | {result['seconds']:.0f} | {result['gib']:.1f} |"


def _cell(form: dict[str, Any]) -> str:
    if "refused" in form:
        return form["refused"].replace("|", "\\|")[:180]
    return f"{form['launches'][0]} + {form['launches'][1]}, {form['calls'][0]} + {form['calls'][1]}, {form['kernels']}"


def compile_workload(name: str, folder: Path, seconds: int, gib: int) -> dict[str, Any]:
    """Records one workload into `folder`, and says how it went."""
    words = shlex.split(read_document(TRACES / name / GRAPH_FILE)["recorder"]["command"])
    form = TRACES / name / COMPILED_FILES["zero3"]
    tells = form.exists() and "--stand-ins" in read_document(form)["recorder"]["command"]
    command = [sys.executable, *words[1:-2], "--backend", "inductor", *(["--stand-ins"] if tells else []), "-o", str(folder)]
    # Inductor asks SymPy for the same expressions again and again: more of them remembered save a fifth of the time.
    memory = {"SYMPY_CACHE_SIZE": "100000"}
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1", **memory}
    limits = ((resource.RLIMIT_DATA, gib << 30), (resource.RLIMIT_CPU, seconds))
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stderr=said,
            preexec_fn=lambda: [resource.setrlimit(which, (limit, limit)) for which, limit in limits],
        )
        _, status, used = os.wait4(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read()
    whole = read_document(TRACES / name / GRAPH_FILE)
    forms = {form: _outcome(folder, form, whole, reason_of(form, text, code, seconds)) for form in COMPILED_FILES}
    committed = [file for file in (GRAPH_FILE, *COMPILED_FILES.values()) if (TRACES / name / file).exists()]
    differ = [file for file in committed if not _same(folder / file, TRACES / name / file)]
    spent = {"seconds": round(used.ru_utime + used.ru_stime), "gib": round(used.ru_maxrss / 2**20, 1)}
    return {"workload": name, **spent, **({"differ": differ} if differ else {}), **forms}


def _same(one: Path, other: Path) -> bool:
    return one.exists() and one.read_bytes() == other.read_bytes()


def _outcome(folder: Path, form: str, whole: dict[str, Any], reason: str) -> dict[str, Any]:
    path = folder / COMPILED_FILES[form]
    return facts_of(path, whole) if path.exists() else {"refused": reason}


def reason_of(form: str, said: str, code: int, seconds: int) -> str:
    """Why there is no such form, from what the recorder said and how it ended."""
    reasons = {found["form"]: found["reason"] for found in _REFUSED.finditer(said)}
    reason = reasons.get(form) or reasons.get(None)
    if reason is None and code < 0:
        reason = f"not done after {seconds} s" if -code in (signal.SIGKILL, signal.SIGXCPU) else f"ended by signal {-code}"
    last = said.strip().splitlines()[-1:] or [f"ended with {code}"]
    return reason or last[0]


def facts_of(path: Path, whole: dict[str, Any]) -> dict[str, Any]:
    """What the page says of a form, and what it has in common with the ATen graph `whole`."""
    document = read_document(path)
    if faults := faults_of(document):
        return {"refused": f"the record breaks a rule: {faults[0]}"}
    launches = [sum("kernel" in op for op in graph["ops"]) for graph in document["graphs"]]
    calls = [len(graph["ops"]) - count for graph, count in zip(document["graphs"], launches)]
    facts = {"launches": launches, "calls": calls, "kernels": len(document["kernels"]), "bytes": path.stat().st_size}
    try:
        return {**facts, "beside": beside(document, whole)}
    except ValueError as different:
        return {"refused": f"the record is of another model: {different}"}


def _names() -> list[str]:
    """All committed workloads, the smallest first."""
    files = sorted(TRACES.glob(f"*/{GRAPH_FILE}"), key=lambda path: (path.stat().st_size, path))
    return [path.parent.name for path in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--gib", type=int, default=8)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    for name in (asked.workloads or _names()) if asked.what == "run" else []:
        if name in lines() and not asked.again:
            continue
        with tempfile.TemporaryDirectory() as made:
            result = compile_workload(name, Path(made), asked.seconds, asked.gib)
            if asked.keep:
                shutil.copytree(made, asked.keep / name, dirs_exist_ok=True)
        LINES.write_text("".join(json.dumps(line) + "\n" for line in {**lines(), name: result}.values()))
        print(json.dumps(result), flush=True)
    if asked.what == "page":
        PAGE.write_text(page(lines()))


if __name__ == "__main__":
    main()
