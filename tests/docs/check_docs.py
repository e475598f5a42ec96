#!/usr/bin/env python3
"""README and guide: short sentences and cells, no dated history, links that lead somewhere, commands that run.
Reference: no dated history.

    tests/docs/check_docs.py BIN

BIN holds dc-sim. Of the fenced `sh` blocks the lines that begin with dc-sim run in an empty folder beside traces and
configs; `yaml` and `json` blocks whose first line is a comment with a file's name are written there first. Lines of a
`text` block behind a command have to be in its output.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = [SOURCE / "README.md", *sorted((SOURCE / "docs" / "guide").glob("*.md"))]
REFERENCE = sorted((SOURCE / "docs" / "reference").glob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
HISTORY = re.compile(r"\b(?:until|since|before|after|on) 20\d\d-\d\d-\d\d", re.I)
# Recordings that a reader makes; here a small one stands for them.
STAND_INS = ("my-model", "my-qwen")
# Its job is recorded by the reader; dc-sim search with DeepSpeed's space has tests of its own.
NOT_RUN = {"with-deepspeed.md"}


def prose_of(page):
    return FENCE.sub("\n\n", page.read_text()).splitlines()


def dated_faults(page):
    return [f"dated history: {line[:80]}" for line in prose_of(page) if HISTORY.search(line)]


def prose_faults(page):
    for line in prose_of(page):
        cells = re.split(r"(?<!\\)\|", line.strip("|")) if line.startswith("|") else []
        for cell in cells:
            if len(re.sub(r"\]\([^)]*\)", "]", cell).strip()) > 200:
                yield f"a cell of more than 200 characters: {cell[:80]}"
        for sentence in re.split(r"(?<=[.!?:;]) ", line) if not cells else cells:
            if len(sentence.split()) > 40:
                yield f"a sentence of more than 40 words: {sentence[:80]}"
        for target in re.findall(r"\]\(([^)#\s]+)", line):
            if "://" not in target and not (page.parent / target).exists():
                yield f"no such file: {target}"


def command_faults(page, programs):
    with tempfile.TemporaryDirectory(prefix="dcsim-") as folder:
        here = pathlib.Path(folder)
        for name in ("traces", "configs"):
            (here / name).symlink_to(SOURCE / name)
        for name in STAND_INS:
            (here / name).symlink_to(SOURCE / "traces" / "tiny-llama")
        environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", LC_ALL="C")
        output = ""
        for language, body in FENCE.findall(page.read_text()):
            first = re.match(r"(?:#|//) ([\w.-]+)\n", body)
            if language in ("yaml", "json") and first:
                (here / first[1]).write_text(body)
            if language == "sh":
                output = ""
                for command in re.sub(r"\\\n", " ", body).splitlines():
                    if not command.startswith("dc-sim "):
                        continue
                    done = subprocess.run(["sh", "-c", command], cwd=here, env=environment, capture_output=True,
                                          text=True, check=False)
                    output += done.stdout + done.stderr
                    if done.returncode:
                        yield f"exit {done.returncode}: {command}\n{done.stderr}"
            if language == "text":
                shown = set(output.splitlines())
                yield from (f"not in the output: {line}" for line in body.splitlines() if line not in shown)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    programs = pathlib.Path(sys.argv[1]).resolve()
    found = [(page, fault) for page in PAGES + REFERENCE for fault in dated_faults(page)]
    for page in PAGES:
        found += [(page, fault) for fault in prose_faults(page)]
        if page.name not in NOT_RUN:
            found += [(page, fault) for fault in command_faults(page, programs)]
    print("\n".join(f"{page.relative_to(SOURCE)}: {fault}" for page, fault in found))
    return 1 if found else 0


sys.exit(main())
