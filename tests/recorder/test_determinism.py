"""The same command gives the same bytes, in another process, another folder and with other hash seeds."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from conftest import ROOT
from dcrecord.graph_file import read_document

COMMITTED = ROOT / "traces" / "tiny-llama" / "graph.json.xz"


def _record(arguments: list[str], hash_seed: str, folder: Path) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "tools" / "dcrecord" / "src")}
    command = [sys.executable, "-m", "dcrecord", *arguments, "-o", "made"]
    folder.mkdir()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (folder / "made" / "graph.json.xz").read_bytes()


def test_committed_tiny_llama_is_made_again_byte_for_byte(tmp_path: Path) -> None:
    words = shlex.split(read_document(COMMITTED)["recorder"]["command"])
    assert words[:3] == ["python", "-m", "dcrecord"] and words[-2:] == ["-o", "traces/tiny-llama"]
    first = _record(words[3:-2], "1", tmp_path / "one")
    second = _record(words[3:-2], "20251", tmp_path / "two")
    assert first == second
    assert first == COMMITTED.read_bytes()
