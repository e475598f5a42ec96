"""The command line: what it reads, what it writes, and how it says no."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from dcrecord.command_line import main
from dcrecord.graph_file import read_document

NET = '''
import sys
import types
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 4)
        self.layer = nn.Linear(4, 3)

    def forward(self, ids, target):
        scores = self.layer(self.words(ids))
        return nn.functional.cross_entropy(scores, target), scores


def build(batch=5):
    return Net(), (torch.arange(batch), torch.tensor([2, 0, 1, 2, 0][:batch]))


def named():
    return Net(), {"target": torch.zeros(3, dtype=torch.int64), "ids": torch.full((3,), 19)}


def needs(batch, width):
    return Net(), torch.zeros(batch)


def wrong():
    return Net()


def fails():
    return 1 / 0


def list_input():
    return Net(), {"ids": [1, 2]}


def leaves():
    sys.exit(0)


class Leaves(Net):
    def forward(self, ids, target):
        sys.exit(0)


def leaves_in_forward():
    return Leaves(), build()[1]


def long(sequence=8):
    model = nn.Sequential(Net())
    model.config = types.SimpleNamespace(max_position_embeddings=8)
    return model, torch.zeros(2, sequence, dtype=torch.int64)


def interrupted():
    raise KeyboardInterrupt
'''


@pytest.fixture
def net(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    return str(tmp_path / "net.py")


BAD_INPUT = [
    ("", "missing MODEL, -o/--out"),
    ("tiny-llama", "missing -o/--out"),
    ("tiny-lama -o out", "unknown model 'tiny-lama' (did you mean 'tiny-llama'?): expected one of tiny-llama, llama-3.2-1b"),
    ("lst", "missing -o/--out"),
    ("tiny-llama -o out --bach 2", "unknown option '--bach' (did you mean '--batch'?)"),
    ("tiny-llama -o out --batch 0", "--batch: '0' given, expected a whole number of at least 1"),
    ("tiny-llama -o out --seq many", "--seq: 'many' given, expected a whole number of at least 1"),
    ("tiny-llama -o out --batch", "--batch: expected one argument"),
    ("tiny-llama -o out more", "unexpected argument 'more'"),
    ("tiny-llama -o out --dtype bf16", "--dtype: 'bf16' given (did you mean 'bfloat16'?), expected one of float32,"),
    ("tiny-llama -o out --attention flsh", "--attention: 'flsh' given (did you mean 'flash'?), expected one of auto, auto-without-cudnn, flash,"),
    ("tiny-llama -o out --partitioner min", "--partitioner: 'min' given, expected one of mincut,"),
    ("tiny-llama -o out --autocast bfloat16 --dtype bfloat16", "autocast casts float32 parameters, expected --dtype float32"),
    ("tiny-llama -o out --activation-checkpointing --checkpoint x", "expected one of the two"),
    ("tiny-llama -o out --hold none --hold logits", "--hold none with --hold NAME: expected one of the two"),
    ("tiny-llama -o out --vocabulary 5", "--vocabulary: tiny-llama has its own; expected it with file.py:function only"),
    ("tiny-llama -o out --name a/b", "--name: 'a/b' given, expected letters, digits, '.', '-' and '_'"),
    ("NET -o out", "expected file.py:function, such as net.py:build"),
    ("NET:bild -o out", "net.py has no function 'bild' (did you mean 'build'?)"),
    ("missing.py:build -o out", "there is no file missing.py"),
    ("BROKEN:build -o out", "broken.py cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_that_name' (at"),
    ("NET:wrong -o out", "returned an object of type Net: expected (module, inputs)"),
    ("NET:fails -o out", "failed: ZeroDivisionError: division by zero (at net.py:36)"),
    ("NET:leaves -o out", "failed: SystemExit: 0 (at net.py:44)"),
    ("LEAVES:build -o out", "leaves.py cannot be loaded: SystemExit: 0 (at leaves.py:2)"),
    ("NET:leaves_in_forward -o out", "graph break: Dynamo does not know how to trace the builtin `sys.exit.`"),
    ("tiny-llama -o out --seq 65", "--seq 65: tiny-llama has positions for at most 64 tokens"),
    ("NET:long --seq 9 -o out", "input 'input' has 9 tokens in a row, and the model positions for at most 8"),
    ("NET:list_input -o out", "input 'ids' is an object of type list: expected (module, inputs)"),
    ("NET:needs -o out", "needs 'batch': expected --batch"),
    ("NET:needs --batch 2 -o out", "needs 'width': expected a default value"),
    ("NET:build --seq 2 -o out", "takes no parameter 'sequence'; expected a function that does"),
    ("NET:build --vocabulary tagret=3 -o out", "there is no integer input of that name (did you mean 'target'?)"),
    ("NET:build --vocabulary x -o out", "--vocabulary: 'x' given, expected N or INPUT=N with N at least 1"),
    ("list all", "unexpected argument 'all': expected `python -m dcrecord list` alone"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT, ids=[row[0] or "nothing" for row in BAD_INPUT])
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: str, sentence: str, net: str, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    words = arguments.replace("NET", net).replace("BROKEN", net.replace("net.py", "broken.py"))
    words = words.replace("LEAVES", net.replace("net.py", "leaves.py")).split()
    before = sorted(tmp_path.iterdir())
    assert main(words) == 2
    progress = ("dcrecord: building", "dcrecord: tracing")
    printed = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(progress)]
    assert len(printed) == 1 and printed[0].startswith("dcrecord: error: ")
    assert sentence in printed[0]
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "__pycache__"] == before


def test_interruption_is_one_line_and_exit_code_130(net: str, tmp_path: Path, capsys: Any) -> None:
    assert main([f"{net}:interrupted", "-o", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err.splitlines()[1:] == ["dcrecord: interrupted"]
    assert not (tmp_path / "out").exists()


def test_thread_that_a_file_left_running_does_not_keep_the_process() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "dcrecord" / "src")}
    program = (
        "import sys, threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nsys.argv[1:] = ['list']\n"
        "from dcrecord.command_line import run\nrun()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "llama-3-8b" in done.stdout


def test_help_has_examples_and_needs_no_torch() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools" / "dcrecord" / "src")}
    program = "import sys; sys.argv[1:] = ['--help']\nimport atexit; atexit.register(lambda: print('torch' in sys.modules))\n"
    command = [sys.executable, "-c", f"{program}from dcrecord.command_line import main\nmain()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    assert "examples:\n  python -m dcrecord llama-3-8b" in done.stdout
    assert done.stdout.endswith("False\n")


def test_list_names_the_models_with_their_sizes(capsys: Any) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "parameters", "batch", "seq", "dtype", "attention"]
    assert ["qwen3-8b", "8,190,735,360", "1", "4096", "bfloat16", "auto"] in [line.split() for line in lines]


def test_function_of_a_file_is_recorded(net: str, tmp_path: Path, capsys: Any) -> None:
    assert main([f"{net}:build", "--dtype", "float32", "-o", str(tmp_path / "out")]) == 0
    document = read_document(tmp_path / "out" / "graph.json.xz")
    assert (document["name"], document["tokens"]) == ("net-build", 5)
    assert document["recorder"]["command"] == "python -m dcrecord net.py:build --dtype float32 -o traces/net-build"
    steps = [line.partition(":")[2].split()[0] for line in capsys.readouterr().err.splitlines()]
    assert steps == ["building", "tracing", "finding", "wrote"]


def test_integers_are_below_the_largest_example_plus_one_or_what_is_asked(net: str, tmp_path: Path) -> None:
    """`build` has ids 0 to 4 and targets 0 to 2."""
    main([f"{net}:build", "-o", str(tmp_path / "out")])
    main([f"{net}:build", "--vocabulary", "ids=20", "--batch", "2", "-o", str(tmp_path / "asked")])
    fills = [
        {entry["name"]: entry["fill"]["vocabulary"] for entry in read_document(tmp_path / folder / "graph.json.xz")["inputs"]}
        for folder in ("out", "asked")
    ]
    assert fills == [{"ids": 5, "target": 3}, {"ids": 20, "target": 3}]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("target=9", "below 9, are classes of a loss, of which there are 3; expected --vocabulary target=3"),
        ("ids=99", "below 99, are rows of a table, of which there are 20; expected --vocabulary ids=20"),
    ],
)
def test_integers_outside_of_what_takes_them_are_refused(
    asked: str, sentence: str, net: str, tmp_path: Path, capsys: Any
) -> None:
    """An embedding of 20 rows, a loss over 3 classes."""
    assert main([f"{net}:build", "--vocabulary", asked, "-o", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_inputs_by_name_keep_their_order_and_names(net: str, tmp_path: Path) -> None:
    main([f"{net}:named", "--hold", "none", "-o", str(tmp_path / "out")])
    document = read_document(tmp_path / "out" / "graph.json.xz")
    assert [(entry["name"], entry["fill"]["vocabulary"]) for entry in document["inputs"]] == [("target", 1), ("ids", 20)]
    assert [output["kind"] for output in document["graphs"][0]["outputs"][:2]] == ["loss", "saved"]


def test_readme_is_written_once_and_holds_the_command(net: str, tmp_path: Path) -> None:
    readme = tmp_path / "out" / "README.md"
    main([f"{net}:build", "-o", str(tmp_path / "out")])
    document = read_document(tmp_path / "out" / "graph.json.xz")
    assert f"```\n{document['recorder']['command']}\n```" in readme.read_text()
    readme.write_text("mine")
    main([f"{net}:build", "-o", str(tmp_path / "out")])
    assert readme.read_text() == "mine"


def test_paths_of_this_machine_are_not_written(net: str, tmp_path: Path) -> None:
    main([f"{net}:build", "-o", str(tmp_path / "out")])
    text = str(read_document(tmp_path / "out" / "graph.json.xz")) + (tmp_path / "out" / "README.md").read_text()
    assert re.findall(re.escape(str(tmp_path)), text) == []


def test_refused_module_leaves_no_file(net: str, tmp_path: Path, capsys: Any) -> None:
    assert main([f"{net}:build", "--hold", "nothing", "-o", str(tmp_path / "out")]) == 2
    assert "--hold nothing" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_failing_disk_leaves_the_old_file_whole(net: str, tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    folder = tmp_path / "out"
    main([f"{net}:build", "-o", str(folder)])
    before = (folder / "graph.json.xz").read_bytes()

    def full(_: Any, __: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main([f"{net}:build", "--batch", "3", "-o", str(folder)]) == 3
    assert "No space left on device" in capsys.readouterr().err
    assert (folder / "graph.json.xz").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "graph.json.xz"]


def test_folder_that_cannot_be_is_found_before_recording(net: str, capsys: Any) -> None:
    assert main([f"{net}:build", "-o", f"{net}/out"]) == 3
    assert capsys.readouterr().err == f"dcrecord: error: {net} is not a folder\n"


def test_defaults_follow_each_other() -> None:
    from dcrecord.record_options import read_request

    def options(*words: str) -> tuple[str, str]:
        read = read_request([*words, "-o", "out"]).options
        return read.dtype, read.attention

    assert options("qwen3-8b") == ("bfloat16", "auto")
    assert options("qwen3-8b", "--dtype", "float32") == ("float32", "auto")
    assert options("qwen3-8b", "--autocast", "bfloat16") == ("float32", "auto")
    assert options("tiny-llama") == ("float32", "math")
    assert options("net.py:build") == ("bfloat16", "auto")


def test_command_says_again_what_was_asked() -> None:
    from dcrecord.record_options import read_request

    words = "llama-3-8b --batch 2 --seq 64 --autocast bfloat16 --freeze model.embed_tokens.* --hold none -o elsewhere"
    command = read_request(words.split()).command
    assert command == (
        "python -m dcrecord llama-3-8b --batch 2 --seq 64 --autocast bfloat16 --freeze 'model.embed_tokens.*' --hold none "
        "-o traces/llama-3-8b"
    )
