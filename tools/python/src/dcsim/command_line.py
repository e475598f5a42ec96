"""The program dc-sim, as an installed wheel has it."""

import sys

from dcsim import _native


def run() -> None:
    sys.exit(_native.run(["dc-sim", *sys.argv[1:]]))
