#!/usr/bin/env python3
"""Sources of a compilation database that differ from a commit, or include a header of the project that does.

    changed_sources.py COMPILE_COMMANDS [BASE]    one a line; without BASE all of the project's

A header is seen through what the preprocessor says that a source includes, so nothing has to be built.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def units(database):
    """Sources of the project in the database, with folder and command of each."""
    for unit in json.loads(pathlib.Path(database).read_text()):
        path = pathlib.Path(unit["directory"], unit["file"]).resolve()
        if path.is_relative_to(ROOT):
            yield str(path.relative_to(ROOT)), unit["directory"], shlex.split(unit["command"])


def included(folder, command):
    """Files of the project that a unit reads, itself among them."""
    output = command.index("-o")
    preprocess = [*command[:output], *command[output + 2 :], "-MM"]
    text = subprocess.run(preprocess, cwd=folder, capture_output=True, text=True, check=True).stdout
    paths = [pathlib.Path(folder, name).resolve() for name in text.replace("\\\n", " ").split(":", 1)[1].split()]
    return {str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)}


def changed_since(base):
    command = ["git", "diff", "--name-only", "--diff-filter=d", base, "--", "*.cpp", "*.h"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    found = list(units(sys.argv[1]))
    if sys.argv[2:]:
        changed = changed_since(sys.argv[2])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            reads = list(threads.map(lambda unit: included(*unit[1:]), found))
        found = [unit for unit, files in zip(found, reads, strict=True) if files & changed]
    print("\n".join(sorted({unit[0] for unit in found})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
