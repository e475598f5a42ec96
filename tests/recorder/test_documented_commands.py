"""The commands of `python -m dcrecord` that README, guide and reference show: its own parsers take them, and those of
small models run."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import ROOT
from dcrecord.command_line import main, run_list
from dcrecord.errors import RecorderError
from dcrecord.graph_file import read_document
from dcrecord.kernels_command import kernels_parser
from dcrecord.lower_command import lower_parser
from dcrecord.record_options import read_request, record_parser
from dcrecord.reference_command import reference_parser
from graph_checker import faults_of

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md")), *sorted((ROOT / "docs/reference").glob("*.md"))]
FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
# A file of a page: its name stands in the first line.
FILE = re.compile(r"^```(?:python|json)\n(?:#|//) ([\w.-]+)\n(.*?)^```$", re.M | re.S)
COMMAND = re.compile(r"^(?:\S*/)?(?:python3? -m )?dcrecord (.+)$", re.M)


# Files that a reader brings along.
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 2048,
}
NET = """import torch

def build(batch=2):
    return torch.nn.Linear(16, 16), torch.randn(batch, 16)
"""


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
    elif first == "kernels":
        kernels_parser().read(others)
    elif first == "lower":
        lower_parser().read(others)
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


def is_small(words: str) -> bool:
    """Named models are large, but for the one that tests train. Of files of transformers the guide's runs."""
    return words.startswith(("hf path/to/", "reference traces/tiny-llama")) or ":" in words.split()[0]


def bring_files(folder: Path) -> None:
    for page in PAGES:
        for name, text in FILE.findall(page.read_text()):
            (folder / name).write_text(text)
    (folder / "path/to").mkdir(parents=True)
    (folder / "path/to/config.json").write_text(json.dumps(CONFIG))
    (folder / "net.py").write_text(NET)
    shutil.copytree(ROOT / "traces/tiny-llama", folder / "traces/tiny-llama", ignore=shutil.ignore_patterns("measured", "reference*"))


@pytest.mark.parametrize("words", [words for words in commands() if is_small(words)])
def test_what_pages_show_runs(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = shlex.split(words, comments=True)
    assert main(arguments) == 0
    if arguments[0] == "reference":
        assert json.loads((tmp_path / arguments[1] / "reference.json").read_text())["steps"]
    else:
        assert faults_of(read_document(tmp_path / arguments[arguments.index("-o") + 1] / "graph.json.xz")) == []
