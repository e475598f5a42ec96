"""The program beside the module: build/dev/bin/dc-sim, or what DCSIM_BIN names. PYTHONPATH holds build/dev/python."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/support"))
PROGRAM = pathlib.Path(os.environ.get("DCSIM_BIN", SOURCE / "build/dev/bin")) / "dc-sim"


class Program:
    """dc-sim, run in the source folder."""

    def run(self, *words):
        return subprocess.run([PROGRAM, *map(str, words)], cwd=SOURCE, capture_output=True, text=True, check=False)

    def document(self, *words):
        """What --json writes."""
        return json.loads(self.run(*words, "--json", "-").stdout)

    def error(self, *words):
        """The message of bad input."""
        run = self.run(*words)
        assert run.returncode == 2 and run.stdout == ""
        return run.stderr.removeprefix("dc-sim: ").removesuffix("\n")


@pytest.fixture
def program(monkeypatch):
    monkeypatch.chdir(SOURCE)
    return Program()
