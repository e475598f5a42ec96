"""`torchrun ... -m dcsim_deepspeed train.py ARGUMENTS`: runs a script as DCSIM_PLAN or DCSIM_RECORD ask for.
`python -m dcsim_deepspeed calibrate`: measures this host (calibrate.py)."""

import runpy
import sys

from dcsim_deepspeed.installing import install


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: python -m dcsim_deepspeed SCRIPT [ARGUMENT...], with DCSIM_PLAN=FILE or DCSIM_RECORD=FOLDER\n"
              "       python -m dcsim_deepspeed calibrate [--out FILE]",
              file=sys.stderr)
        return 2
    if sys.argv[1] == "calibrate":
        from dcsim_deepspeed import calibrate

        return calibrate.main(sys.argv[2:])
    install()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
