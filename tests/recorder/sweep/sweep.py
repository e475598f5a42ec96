"""Records the calls of eager_calls.py, and compares with what eager PyTorch says of each.

  python3 tests/recorder/sweep/eager_calls.py --device cuda --out table.json      on a GPU
  python3 tests/recorder/sweep/sweep.py [--table table.json] [--out DIR]          here: renews outcomes.json

outcomes.json says of each call what eager PyTorch does on a GPU and what the recorder does. With a table sweep.py also
renews the recorder's cuda_dtypes.json, the dtypes that operators take on a GPU; without one, what the recorder does alone.
DIR gets the recordings.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
for folder in (ROOT / "tools" / "dcrecord" / "src", HERE):
    sys.path.insert(0, str(folder))

from dcrecord.errors import RecorderError  # noqa: E402
from dcrecord.graph_file import FORMAT, to_bytes  # noqa: E402
from dcrecord.options import Options, Reporter  # noqa: E402
from dcrecord.recording import record  # noqa: E402
from dcrecord.workload import Fill, Workload, call_by_position  # noqa: E402
from eager_calls import Call, calls  # noqa: E402

OUTCOMES = HERE / "outcomes.json"
DTYPES = ROOT / "tools" / "dcrecord" / "src" / "dcrecord" / "cuda_dtypes.json"


def recorded(call: Call) -> dict[str, Any] | str:
    """The document of a call, or the sentence with which it is refused."""
    module, inputs = call.build()
    names = [f"x{place}" for place in range(len(inputs))]
    fills = {name: Fill() if each.is_floating_point() else Fill(2) for name, each in zip(names, inputs)}
    options = Options(
        batch=None,
        sequence=None,
        dtype=str(call.parameters).removeprefix("torch."),
        attention="auto",
        autocast="bfloat16" if call.autocast else None,
    )
    workload = Workload("call", module, call_by_position, dict(zip(names, inputs)), fills, 1, set())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"format": FORMAT, "name": "call", "recorder": RECORDER, **record(workload, options, Reporter())}
    except RecorderError as error:
        return str(error)


RECORDER = {"dcrecord": "1", "torch": "2.11", "transformers": "5.17", "command": "python -m dcrecord"}


def outcome_of(call: Call, folder: Path | None = None) -> str:
    """"recorded", or the sentence of the refusal; a recording is written to `folder`."""
    made = recorded(call)
    if isinstance(made, str):
        return made
    if folder is not None:
        name = "".join(letter if letter.isalnum() else "-" for letter in call.name)
        (folder / name).mkdir(parents=True)
        (folder / name / "graph.json.xz").write_bytes(to_bytes(made, compressed=True))
    return "recorded"


def disagrees(on_gpu: str, recorder: str) -> bool:
    """Whether what raises is recorded, or a refusal is no sentence about what does not run."""
    return on_gpu != "runs" and recorder == "recorded"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="what eager_calls.py wrote on a GPU")
    parser.add_argument("--out", type=Path, help="folder for the recordings")
    asked = parser.parse_args()
    folder = asked.out or Path(tempfile.mkdtemp())
    versions, on_gpu = eager_outcomes(asked.table)
    outcomes: dict[str, list[str]] = {}
    for call in calls():
        try:
            outcomes[call.name] = [on_gpu[call.name], outcome_of(call, folder)]
        except Exception as error:
            outcomes[call.name] = [on_gpu[call.name], f"FAILED: {type(error).__name__}: {str(error)[:200]}"]
        if disagrees(*outcomes[call.name]):
            print(call.name, *outcomes[call.name], sep="\n  ", flush=True)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in outcomes.items())
    OUTCOMES.write_text(f'{{"versions": {json.dumps(versions)}, "calls": {{\n{rows}\n}}}}\n', encoding="utf-8")
    return 0


def eager_outcomes(path: Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Versions, and what eager PyTorch does of each call: of a new table, which renews the dtypes, or as it was."""
    if path is None:
        known = json.loads(OUTCOMES.read_text(encoding="utf-8"))
        return known["versions"], {name: eager for name, (eager, _) in known["calls"].items()}
    table = json.loads(path.read_text(encoding="utf-8"))
    DTYPES.write_text(dtype_table(table), encoding="utf-8")
    made = table["calls"].items()
    return table["versions"], {name: "runs" if of["outcome"] == "runs" else of["message"][:100] for name, of in made}


def dtype_table(table: dict[str, Any]) -> str:
    """cuda_dtypes.json: an operator a line, its signatures that run and that raise."""
    from dcrecord.dtype_rules import LETTERS

    letters = {str(dtype).removeprefix("torch."): letter for dtype, letter in LETTERS.items()}
    lines = []
    for name, rules in sorted(table["operators"].items()):
        kept: dict[str, list[str]] = {"runs": [], "raises": []}
        for dtypes, message in rules.items():
            words = [letters.get(word.removesuffix("()"), "_") + ("0" if word.endswith("()") else "") for word in dtypes.split()]
            kept["raises" if message else "runs"].append("".join(words))
        text = {key: " ".join(sorted(set(found))) for key, found in kept.items() if found}
        lines.append(f"{json.dumps(name)}: {json.dumps(text)}")
    return f'{{"versions": {json.dumps(table["versions"])}, "operators": {{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    sys.exit(main())
