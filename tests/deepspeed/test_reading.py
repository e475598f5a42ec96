"""DeepSpeed still reads configurations as the committed answers say."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import ROOT


def test_a_sample_of_configurations_is_read_as_recorded() -> None:
    script = ROOT / "tools/oracles/record_deepspeed_config.py"
    answers = ROOT / "tests/data/deepspeed_config/oracle.json.gz"
    checked = subprocess.run(
        [sys.executable, str(script), "--out", str(answers), "--check", "--sample", "100"],
        env={**os.environ, "DS_ACCELERATOR": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
