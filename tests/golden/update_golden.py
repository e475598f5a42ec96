#!/usr/bin/env python3
"""Writes the expectations of the golden tests anew, by running each case's command.

    tests/golden/update_golden.py BIN [CASE...]

BIN is the folder of the built programs (build/dev/bin); without a CASE all are written: those of
this folder, and dc-run's in tests/exec/golden where BIN has it. A change that this makes is a
changed answer of the program: read the diff, and say in the commit why it is right. Folders clusters and gpus hold
copies of files of configs that new measurements leave as they are. Files of a case, of which empty ones are left out:

    cmd      run by sh in the source folder, with BIN first in PATH, $CASE the case's folder and
             $OUT an empty folder
    stdout, stderr   what it printed, the name of $OUT and the version taken out
    exit     its exit code
    files    names of what it left in $OUT
"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = {"dc-sim": SOURCE / "tests" / "golden", "dc-run": SOURCE / "tests" / "exec" / "golden"}


@functools.cache
def version(programs: pathlib.Path) -> str:
    """Version and commit, as answers name them."""
    told = subprocess.run([programs / "dc-sim", "--version"], capture_output=True, text=True, check=True).stdout
    number, commit = re.match(r"dc-sim (\S+) \(commit ([^;]+);", told).groups()
    return f"{number} {commit}"


def run_case(case: pathlib.Path, programs: pathlib.Path) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="dcsim-") as out:
        environment = dict(os.environ, LC_ALL="C", OUT=out, CASE=str(case.relative_to(SOURCE)),
                           PATH=f"{programs}:{os.environ['PATH']}")
        done = subprocess.run(["sh", str(case / "cmd")], cwd=SOURCE, env=environment,
                              capture_output=True, text=True, check=False)
        return {
            "stdout": done.stdout.replace(out, "$OUT").replace(version(programs), "$VERSION"),
            "stderr": done.stderr.replace(out, "$OUT"),
            "exit": f"{done.returncode}\n",
            "files": "".join(f"{name}\n" for name in sorted(os.listdir(out))),
        }


def write_case(case: pathlib.Path, programs: pathlib.Path) -> None:
    for name, text in run_case(case, programs).items():
        path = case / name
        if text:
            path.write_text(text)
        else:
            path.unlink(missing_ok=True)


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    programs = pathlib.Path(sys.argv[1]).resolve()
    cases = [path.parent for program, folder in FOLDERS.items() if (programs / program).exists()
             for path in sorted(folder.glob("*/cmd"))]
    names = {case.name for case in cases}
    for name in sys.argv[2:]:
        if name not in names:
            print(f"update_golden.py: no case {name}", file=sys.stderr)
            return 2
    for case in cases:
        if len(sys.argv) == 2 or case.name in sys.argv[2:]:
            write_case(case, programs)
            print(case.relative_to(SOURCE))
    return 0


if __name__ == "__main__":
    sys.exit(main())
