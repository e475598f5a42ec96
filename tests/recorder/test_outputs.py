"""Outputs in tuples, mappings, dataclasses and caches are held and computed as those at the top are."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from conftest import record_module
from dcrecord.errors import RecorderError
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

ROWS = torch.zeros(6, 8)
Pair = namedtuple("Pair", "loss kept")


@dataclass
class Result:
    loss: torch.Tensor
    kept: Any


class States:
    """Neither a container nor a dataclass: an object with attributes."""

    def __init__(self, kept: list[torch.Tensor]) -> None:
        self.kept = kept


FORMS: dict[str, tuple[Any, list[str]]] = {
    "flat": (lambda loss, kept: (loss, *kept), ["output_1", "output_2"]),
    "tuple": (lambda loss, kept: (loss, tuple(kept)), ["output_1.0", "output_1.1"]),
    "list in a dict": (lambda loss, kept: {"kept": kept, "loss": loss, "number": 3}, ["kept.0", "kept.1"]),
    "dict in a dict": (lambda loss, kept: {"loss": loss, "kept": {"a": kept[0], 1: kept[1]}}, ["kept.a", "kept.1"]),
    "dataclass": (lambda loss, kept: Result(loss, Result(kept[0], kept[1])), ["kept.loss", "kept.kept"]),
    "named tuple": (lambda loss, kept: (loss, Pair(*kept)), ["output_1.0", "output_1.1"]),
}


class Net(nn.Module):
    def __init__(self, form: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.form = form

    def forward(self, rows: torch.Tensor) -> Any:
        kept = []
        for layer in self.layers:
            rows = layer(rows)
            kept.append(rows * 2)  # nothing of the backward needs these
        return self.form(rows.pow(2).mean(), kept)


def _without_names(document: dict[str, Any]) -> dict[str, Any]:
    graphs = [
        {**graph, "outputs": [{**output, "name": ""} for output in graph["outputs"]]} for graph in document["graphs"]
    ]
    return {**document, "graphs": graphs, "options": {}}


def _held(document: dict[str, Any]) -> list[str]:
    return [output["name"] for output in document["graphs"][0]["outputs"] if output.get("held")]


@pytest.mark.parametrize("name", FORMS)
def test_nested_outputs_are_recorded_as_flat_ones(name: str) -> None:
    form, names = FORMS[name]
    document = record_module(lambda: Net(form), ROWS)
    assert document["options"]["hold"] == _held(document) == names
    flat = record_module(lambda: Net(FORMS["flat"][0]), ROWS)
    assert _without_names(document) == _without_names(flat)


def test_hold_names_a_part_or_all_that_lies_in_an_output() -> None:
    form = FORMS["list in a dict"][0]
    for hold, names in ((("kept.1",), ["kept.1"]), (("kept",), ["kept.0", "kept.1"]), ((), [])):
        assert _held(record_module(lambda: Net(form), ROWS, hold=hold)) == names
    with pytest.raises(RecorderError, match="--hold kept.2: the module returns no output of that name"):
        record_module(lambda: Net(form), ROWS, hold=("kept.2",))


def test_two_outputs_of_one_name_are_refused() -> None:
    def form(loss: torch.Tensor, kept: list[torch.Tensor]) -> dict[str, Any]:
        return {"loss": loss, "kept.0": kept[0], "kept": kept}

    with pytest.raises(RecorderError, match="the module returns two outputs called 'kept.0'"):
        record_module(lambda: Net(form), ROWS)


def test_object_whose_tensors_cannot_be_listed_is_refused() -> None:
    with pytest.raises(RecorderError, match="returns an object of class States, whose tensors cannot be listed: expected tuples"):
        record_module(lambda: Net(lambda loss, kept: {"loss": loss, "states": States(kept)}), ROWS)


def test_cache_of_a_language_model_is_held() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
            self.model = LlamaForCausalLM(LlamaConfig(vocab_size=10, num_hidden_layers=2, **sizes))

        def forward(self, words: torch.Tensor) -> Any:
            return self.model(words, labels=words, use_cache=True)

    words = torch.arange(16).view(2, 8) % 10
    cache = [f"past_key_values.{layer}.{part}" for layer in (0, 1) for part in (0, 1)]
    assert _held(record_module(Words, words)) == ["logits", *cache]
    assert _held(record_module(Words, words, hold=("past_key_values.0.1",))) == ["past_key_values.0.1"]
