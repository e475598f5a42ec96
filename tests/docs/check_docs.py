#!/usr/bin/env python3
"""What the pages promise a reader.

README, guide, reference, CONTRIBUTING, CHANGELOG: sentences of 40 words at most, which a colon or semicolon does not
  end; table cells of 200 characters. The commands of README and guide run.
README, guide, reference: no dated history. The page of options is what help texts say, and tables of keys say which
  the schemas require (reference_tables.py). Options of dc-sim and dc-run are those of the committed help texts.
Design: no dates; a page has 20 kB at most; each law of a page of costs has its five parts, in order.
All of docs but the lab: 50,000 words at most.
Everywhere: links lead to files and headings that are there, from comments of sources and configurations, too, and so
  do the paths that pages name.

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

import reference_tables

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCS = SOURCE / "docs"
GUIDE = [SOURCE / "README.md", *sorted((DOCS / "guide").glob("*.md"))]
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
DESIGN = sorted((DOCS / "design").rglob("*.md"))
COSTS = [page for page in DESIGN if page.parent.name == "costs"]
LAB = sorted((DOCS / "lab").glob("*.md"))
OTHERS = [SOURCE / "CONTRIBUTING.md", SOURCE / "CHANGELOG.md"]
# Where comments name pages.
SOURCES = ("model", "sim", "exec", "tools", "tests", "configs", "cmake")
SOURCE_SUFFIXES = {".h", ".cpp", ".cu", ".py", ".sh", ".yaml", ".txt", ".cmake"}

MOST_WORDS_OF_SENTENCE = 40
MOST_CHARACTERS_OF_CELL = 200
MOST_BYTES_OF_DESIGN = 20_000
MOST_WORDS_OUTSIDE_LAB = 50_000
PARTS_OF_LAW = ["Statement", "Formula", "Constants", "Range", "Evidence"]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
DATE = re.compile(r"\b20\d\d-\d\d-\d\d")
HISTORY = re.compile(r"\b(?:until|since|before|after|on) " + DATE.pattern[2:], re.I)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
# What begins a line of its own: list items, headings, quotes, tables.
OWN_LINE = re.compile(r"\s*(?:[-*#>|]|\d+\. )")
PATH = re.compile(r"`((?:model|sim|exec|tools|tests|configs|docs|cmake)/[^`\s:]*)`")
PAGE_IN_COMMENT = re.compile(r"\bdocs/(?:guide|reference|design|lab)/[\w/.-]+?\.md\b")
COMMAND = re.compile(r"(dc-sim|dc-run) ([a-z]+)\b(.*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
HELP_TEXTS = {"dc-sim": SOURCE / "tests/golden", "dc-run": SOURCE / "tests/exec/golden"}
# Recordings that a reader makes; here a small one stands for them.
STAND_INS = ("my-model", "my-qwen")
# Its job is recorded by the reader; dc-sim search with DeepSpeed's space has tests of its own.
NOT_RUN = {"with-deepspeed.md"}


def prose_of(page):
    return FENCE.sub("\n\n", page.read_text()).splitlines()


def paragraphs_of(page):
    """Lines that follow each other are one paragraph; a heading, a list item or a row of a table begins its own."""
    found = [""]
    for line in prose_of(page):
        if not line.strip() or OWN_LINE.match(line) or found[-1].startswith(("|", "#")):
            found.append(line.strip())
        else:
            found[-1] += " " + line.strip()
    return [text for text in found if text.strip()]


def cells_of(row):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|"))]


def dated_faults(page, pattern, what):
    for line in prose_of(page):
        if pattern.search(line):
            yield f"{what}: {line[:80]}"


def prose_faults(page):
    for paragraph in paragraphs_of(page):
        cells = cells_of(paragraph) if paragraph.startswith("|") else []
        for cell in cells:
            if len(LINK.sub("]", cell)) > MOST_CHARACTERS_OF_CELL:
                yield f"a cell of more than {MOST_CHARACTERS_OF_CELL} characters: {cell[:80]}"
        sentences = [sentence for text in cells or [paragraph] for sentence in re.split(r"(?<=[.!?]) ", text)]
        for sentence in sentences:
            if len(sentence.split()) > MOST_WORDS_OF_SENTENCE:
                yield f"a sentence of {len(sentence.split())} words: {sentence[:80]}"


def anchors_of(page):
    """Of its headings, as GitHub makes them."""
    headings = [line.lstrip("#").strip() for line in prose_of(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def link_faults(page):
    for line in prose_of(page):
        for target, anchor in LINK.findall(line):
            if "://" in target:
                continue
            file = (page.parent / target) if target else page
            if not file.exists():
                yield f"no such file: {target}"
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file):
                yield f"no such heading: {target}#{anchor}"


def path_faults(page):
    """Files of this repository that a page names. What holds a name in capitals, … or <…> is a pattern."""
    for line in prose_of(page):
        for name in PATH.findall(line):
            if re.search(r"\b[A-Z]{2,}|[…<]", name):
                continue
            found = any(SOURCE.glob(name.rstrip("/"))) if "*" in name else (SOURCE / name).exists()
            if not found:
                yield f"no such file: {name}"


def size_faults(page):
    if page.stat().st_size > MOST_BYTES_OF_DESIGN:
        yield f"{page.stat().st_size:,} bytes, more than {MOST_BYTES_OF_DESIGN:,}"


def law_faults(page):
    """Of a page of laws: each section has the parts of a law, each once and in order."""
    for section in re.split(r"^## ", page.read_text(), flags=re.M)[1:]:
        parts = re.findall(r"^\*\*(\w+)\.\*\*", section, re.M)
        if parts != PARTS_OF_LAW:
            yield f"{section.splitlines()[0]}: expected {', '.join(PARTS_OF_LAW)}, found {', '.join(parts)}"


def comment_faults():
    """Pages that sources and configurations name, and that are not there."""
    for folder in SOURCES:
        for file in sorted((SOURCE / folder).rglob("*")):
            if file.suffix in SOURCE_SUFFIXES and file.is_file():
                for name in PAGE_IN_COMMENT.findall(file.read_text(errors="replace")):
                    if not (SOURCE / name).exists():
                        yield file, f"no such page: {name}"


def word_faults():
    words = sum(len(page.read_text().split()) for page in DOCS.rglob("*.md") if page not in LAB)
    if words > MOST_WORDS_OUTSIDE_LAB:
        yield DOCS, f"{words:,} words outside the lab, more than {MOST_WORDS_OUTSIDE_LAB:,}"


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


def commands_of(page):
    """Program, command and the rest of what a page says to type: lines of fenced blocks, code among the words."""
    text = page.read_text()
    lines = [line for _, body in FENCE.findall(text) for line in re.sub(r"\\\n", " ", body).splitlines()]
    lines += re.findall(r"`([^`\n]+)`", "\n".join(prose_of(page)))
    for line in lines:
        match = COMMAND.match(line.partition(" # ")[0])
        if match:
            yield match.groups()


def option_faults(page):
    """Options that a program's help does not list. They are read from help texts, as dc-run is not built everywhere."""
    for program, command, rest in commands_of(page):
        file = HELP_TEXTS[program] / f"help-{command}" / "stdout"
        if not file.exists():
            yield f"{program} has no command {command}"
            continue
        listed = [line.split("  ")[1] for line in file.read_text().splitlines() if line.startswith("  -")]
        known = set(OPTION.findall(" ".join(listed).replace(",", " ")))
        yield from (f"{program} {command} has no option {option}" for option in OPTION.findall(rest) if option not in known)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    programs = pathlib.Path(sys.argv[1]).resolve()
    found = [*comment_faults(), *word_faults()]

    def check(pages, faults, *arguments):
        found.extend((page, fault) for page in pages for fault in faults(page, *arguments))

    found.extend((reference_tables.PAGE, fault) for fault in reference_tables.option_page_faults())
    found.extend((DOCS / "reference/clusters.md", fault) for fault in reference_tables.key_faults())
    found.extend((DOCS / "reference/plans.md", fault) for fault in reference_tables.spec_faults())
    check([*GUIDE, *REFERENCE, *DESIGN, *LAB, *OTHERS], link_faults)
    check([*GUIDE, *REFERENCE, *DESIGN, *LAB, OTHERS[0]], path_faults)
    check([*GUIDE, *REFERENCE], dated_faults, HISTORY, "dated history")
    check([*GUIDE, *REFERENCE, *OTHERS], prose_faults)
    check([*GUIDE, *REFERENCE], option_faults)
    check(DESIGN, dated_faults, DATE, "a date")
    check(DESIGN, size_faults)
    check(COSTS, law_faults)
    check([page for page in GUIDE if page.name not in NOT_RUN], command_faults, programs)
    print("\n".join(f"{page.relative_to(SOURCE)}: {fault}" for page, fault in found))
    return 1 if found else 0


sys.exit(main())
