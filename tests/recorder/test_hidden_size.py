"""The hidden size that a recording holds, and the graph's hash, which does not depend on it."""

from types import SimpleNamespace

import pytest
from conftest import ROOT
from dcrecord.graph_file import graph_hash, parse_document, read_text, to_bytes
from dcrecord.hidden_size import hidden_size_of
from torch import nn


def _model(**config: object) -> nn.Module:
    model = nn.Linear(2, 2)
    model.config = SimpleNamespace(**config)
    return model


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"hidden_size": 64, "text_config": SimpleNamespace(hidden_size=128)}, 64),
        ({"hidden_sizes": [32, 96, 48]}, 96),
        ({"text_config": SimpleNamespace(hidden_size=128)}, 128),
        ({"text_config": SimpleNamespace(hidden_sizes=(8, 16))}, 16),
        ({"hidden_size": [64, 64]}, None),
        ({"hidden_sizes": []}, None),
        ({"width": 64}, None),
    ],
)
def test_hidden_size_is_the_trainers(config: dict[str, object], size: int | None) -> None:
    assert hidden_size_of(_model(**config)) == size


def test_a_wrapper_is_looked_through() -> None:
    assert hidden_size_of(nn.Sequential(nn.ReLU(), _model(hidden_size=64))) == 64


def test_of_several_models_none_is_taken() -> None:
    assert hidden_size_of(nn.Sequential(_model(hidden_size=64), _model(hidden_size=32))) is None


def test_a_module_without_configuration_has_none() -> None:
    assert hidden_size_of(nn.Linear(2, 2)) is None


@pytest.mark.parametrize("indented", [False, True])
def test_hash_leaves_the_hidden_size_out(indented: bool) -> None:
    path = ROOT / "traces/tiny-llama/graph.json.xz"
    document = parse_document(read_text(path), path)
    assert document["options"]["hidden_size"] == 35
    held = graph_hash(to_bytes(document, compressed=False, indented=indented))
    del document["options"]["hidden_size"]
    assert held == graph_hash(to_bytes(document, compressed=False, indented=indented))
    document["options"]["batch"] = 3
    assert held != graph_hash(to_bytes(document, compressed=False, indented=indented))
