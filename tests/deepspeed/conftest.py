"""Modules of this folder and the package under test."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in (ROOT / "tests/deepspeed", ROOT / "tools/python/src", ROOT / "tools/dcrecord/src"):
    sys.path.insert(0, str(folder))
