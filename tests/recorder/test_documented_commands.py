"""The commands of `python -m dcrecord` that README, guide and reference show: its own parsers take them."""

from __future__ import annotations

import re
import shlex

import pytest
from conftest import ROOT
from dcrecord.command_line import run_list
from dcrecord.errors import RecorderError
from dcrecord.record_options import read_request, record_parser
from dcrecord.reference_command import reference_parser

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")), *sorted((ROOT / "docs/reference").glob("*.md"))]
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^(?:\S*/)?(?:python3? -m )?dcrecord (.+)$", re.M)


def commands() -> list[str]:
    blocks = [block.replace("\\\n", " ") for page in PAGES for block in FENCE.findall(page.read_text())]
    return sorted({match for block in blocks for match in COMMAND.findall(block)})


def read(words: str) -> None:
    """Parses a command line; a model that is named has to be known, files need not be there."""
    first, *others = shlex.split(words, comments=True)
    if first == "list":
        run_list(others)
    elif first == "reference":
        reference_parser().read(others)
    elif first == "hf":
        record_parser(of_file=True).read(others)
    else:
        read_request([first, *others])


def test_pages_show_each_kind() -> None:
    assert {"list", "reference", "hf"} < {words.split()[0] for words in commands()}


@pytest.mark.parametrize("words", commands())
def test_what_pages_show_is_understood(words: str) -> None:
    read(words)


@pytest.mark.parametrize("words", ["qwen3-4b --bach 2 -o net", "qwen3-4 -o net", "reference net --step 1", "list all", "hf config.json"])
def test_what_is_misspelt_is_not(words: str) -> None:
    with pytest.raises(RecorderError):
        read(words)
