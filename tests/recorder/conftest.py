"""What the tests of the recorder share: `record_module`, and where the files are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "tools" / "dcrecord" / "src", ROOT / "tools" / "oracles", Path(__file__).resolve().parent):
    sys.path.insert(0, str(folder))

import torch  # noqa: E402
from dcrecord.building import build_without_weights  # noqa: E402
from dcrecord.options import Options, Reporter  # noqa: E402
from dcrecord.recording import record  # noqa: E402
from dcrecord.workload import Fill, Workload, call_by_position  # noqa: E402
from graph_checker import faults_of  # noqa: E402

PLAIN = Options(batch=None, sequence=None, dtype="float32", attention="math")


def record_module(
    make: Callable[[], torch.nn.Module], *examples: torch.Tensor, options: Options = PLAIN, **changed: Any
) -> dict[str, Any]:
    """The document of a module of float inputs, and of integer inputs below 10; it satisfies every rule of the format."""
    options = replace(options, **changed)
    body, unknown = build_without_weights(make, options.torch_dtype)
    inputs = {f"x{index}": example for index, example in enumerate(examples)}
    fills = {name: Fill() if example.is_floating_point() else Fill(10) for name, example in inputs.items()}
    workload = Workload("module", body, call_by_position, inputs, fills, examples[0].shape[0], unknown)
    document = {"format": "dc-graph/1", "name": "module", "recorder": {}, **record(workload, options, Reporter())}
    assert faults_of(document) == []
    return document


def operators(document: dict[str, Any], direction: str) -> list[str]:
    """Names of the operators of a graph, in order."""
    graph = next(graph for graph in document["graphs"] if graph["direction"] == direction)
    return [document["schemas"][op["schema"]].partition("(")[0] for op in graph["ops"]]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    """A recording leaves PyTorch's settings as they were."""
    before = _settings()
    yield
    assert _settings() == before


def _settings() -> tuple[Any, ...]:
    deterministic = torch.are_deterministic_algorithms_enabled()
    return torch.get_default_dtype(), torch.is_grad_enabled(), torch._dynamo.config.allow_rnn, deterministic
