"""`dcrecord kernels`: what it compiles without a GPU, what a launch needs to know, and what is refused."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from dcrecord.command_line import main
from dcrecord.errors import RecorderError
from dcrecord.graph_file import COMPILED_FILES, LAYERS_FILES, read_document
from dcrecord.inductor import cubins
from dcrecord.inductor.cubins import compile_kernel
from dcrecord.kernels_command import KERNELS_FILE, kernels_of
from dcrecord.options import Reporter

TINY = ROOT / "traces" / "tiny-llama"
GRIDS = ROOT / "tests" / "data" / "inductor" / "grids.json"
# How a cubin's PTX declares what the executor passes (exec/interpreter/launch_arguments.cpp).
PTX_OF = {"i32": "u32", "i64": "u64", "fp32": "f32", "fp64": "f64"}


FILES = [*COMPILED_FILES.values(), *LAYERS_FILES.values()]


def _kernels() -> list[dict[str, Any]]:
    forms = [read_document(TINY / file) for file in FILES]
    return list({kernel["hash"]: kernel for form in forms for kernel in form["kernels"]}.values())


def _one_of(kind: str) -> dict[str, Any]:
    return copy.deepcopy(next(kernel for kernel in _kernels() if kernel["kind"] == kind))


def test_committed_kernels_of_tiny_llama_are_made_again_byte_for_byte(tmp_path: Path) -> None:
    """In another process, with nothing cached."""
    for file in FILES:
        shutil.copy(TINY / file, tmp_path)
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "20251",
        "PYTHONPATH": str(ROOT / "tools" / "dcrecord" / "src"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
        "TRITON_CACHE_DIR": str(tmp_path / "triton"),
    }
    command = [sys.executable, "-m", "dcrecord", "kernels", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / KERNELS_FILE).read_bytes() == (TINY / KERNELS_FILE).read_bytes()


def test_committed_kernels_are_those_of_the_forms() -> None:
    entries = read_document(TINY / KERNELS_FILE)["kernels"]
    for kernel in _kernels():
        own = [entry for entry in entries if entry["hash"] == kernel["hash"]]
        assert [entry["config"] for entry in own] == kernel["configs"]
        passed = [index for index, (_, kind) in enumerate(kernel["signature"]) if kind != "constexpr"]
        for entry in own:
            assert entry["arguments"] == passed
            assert all(kernel["signature"][index][1].startswith("*") for index in entry["aligned"])
            assert base64.b64decode(entry["cubin"]).startswith(b"\x7fELF")
    assert len(entries) == sum(len(kernel["configs"]) for kernel in _kernels())


def test_configurations_that_no_block_has_memory_for_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = next(kernel for kernel in _kernels() if len(kernel["configs"]) > 2 and kernel["kind"] == "reduction")
    needed = [entry["shared"] for entry in compile_kernel(kernel)]
    assert min(needed) < max(needed)
    monkeypatch.setattr(cubins, "SHARED_BYTES", max(needed) - 1)
    left = [entry["config"] for entry in compile_kernel(kernel)]
    assert left == [config for config, bytes_ in zip(kernel["configs"], needed) if bytes_ < max(needed)]
    monkeypatch.setattr(cubins, "SHARED_BYTES", min(needed) - 1)
    with pytest.raises(RecorderError, match=f"needs more than {min(needed) - 1} bytes of shared memory"):
        compile_kernel(kernel)


@pytest.mark.parametrize("kind", ["pointwise", "reduction", "persistent_reduction"])
def test_parameters_are_the_passed_arguments_and_two_pointers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, seen = _one_of(kind), []
    count = cubins._parameters
    monkeypatch.setattr(cubins, "_parameters", lambda ptx: (seen.append(ptx), count(ptx))[1])
    entry = compile_kernel(kernel)[0]
    declared = re.findall(r"\.param \.(\w+)", seen[0].split(".entry", 1)[1].split(")", 1)[0])
    types = [kernel["signature"][index][1] for index in entry["arguments"]]
    assert declared == [PTX_OF.get(each, "u64") for each in types] + ["u64", "u64"]


def test_grids_of_the_table_are_inductors() -> None:
    """The executor's own are compared with the same table (tests/exec/interpreter/launch_test.cpp)."""
    from torch._inductor.runtime.triton_heuristics import GridExpr

    rows = json.loads(GRIDS.read_text())
    for row in rows:
        grid = GridExpr.from_meta({"grid_type": row["rule"]}, dict(row["config"]))
        assert list(grid.eval_slow(dict(row["numbers"]))) == row["grid"], row
    recorded = {kernel["grid"] for path in ROOT.glob("traces/*/graph-inductor-*.json.xz") for kernel in read_document(path)["kernels"]}
    assert recorded <= {row["rule"] for row in rows}


def test_kernels_that_cannot_be_launched_plainly_are_refused() -> None:
    kernel = _one_of("pointwise")
    with pytest.raises(RecorderError, match="its hash is not that of its source"):
        compile_kernel({**kernel, "source": kernel["source"] + "\n"})
    other = copy.deepcopy(kernel)
    other["configs"][0]["XBLOCK"] *= 2
    with pytest.raises(RecorderError, match="this PyTorch compiles it with .*: expected"):
        compile_kernel(other)
    with pytest.raises(RecorderError, match=f"takes 1 parameters: expected {len(kernel['signature'])} and 2 more"):
        _refuse_parameters(kernel)


def _refuse_parameters(kernel: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cubins, "_parameters", lambda ptx: 1)
        compile_kernel(kernel)


def test_forms_of_another_triton_are_refused() -> None:
    form = read_document(TINY / COMPILED_FILES["zero3"])
    form["backend"]["triton"] = "3.5.0"
    with pytest.raises(RecorderError, match=r"was recorded for triton 3\.5\.0: expected 3\."):
        kernels_of([form], Reporter())


def test_a_folder_without_compiled_forms_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", str(tmp_path)]) == 2
    assert "has no graph-inductor-zero3.json.xz" in capsys.readouterr().err
