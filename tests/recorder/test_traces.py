"""The committed workloads: good documents, recorded as their README says, with the facts that are known of them."""

from __future__ import annotations

import copy
import json
from functools import cache
from math import prod
from typing import Any

import pytest
from conftest import ROOT
from dcrecord.graph_file import read_document
from graph_checker import faults_of, values_of
from jsonschema_rs import Draft202012Validator

TRACES = ROOT / "traces"
SCHEMA = ROOT / "docs" / "reference" / "schemas" / "graph.schema.json"
BIG = {
    "mlp-8x4096": (2048, 1),
    "llama-3.2-1b": (4, 2048),
    "llama-3-8b": (1, 512),
    "qwen3-8b": (1, 4096),
    "qwen3-1.7b": (2, 4096),
    "gpt2-xl": (4, 1024),
    "gpt2": (4, 1024),
    "mistral-7b": (1, 4096),
}
# Recorded with another attention kernel, and with the one that PyTorch takes on an H200.
WITH_CUDNN = {
    "llama-3.2-1b-cudnn": "flash",
    "qwen3-8b-cudnn": "flash",
    "gemma-3-1b-cudnn": "auto-without-cudnn",
    "modernbert-large-cudnn": "auto-without-cudnn",
}
NAMES = sorted(path.name for path in TRACES.iterdir() if path.is_dir())


@cache
def _document(name: str) -> dict[str, Any]:
    return read_document(TRACES / name / "graph.json.xz")


def _params_used(document: dict[str, Any], direction: str) -> set[int]:
    graph = next(graph for graph in document["graphs"] if graph["direction"] == direction)
    used = {value for op in graph["ops"] for value in values_of(op["args"])}
    return used & {entry["value"] for entry in document["params"]}


@pytest.mark.parametrize("name", NAMES)
def test_trace_satisfies_every_rule(name: str) -> None:
    assert faults_of(_document(name)) == []


@pytest.mark.parametrize("name", NAMES)
def test_trace_fits_the_json_schema(name: str) -> None:
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(_document(name))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda d: d.update(extra=1), []),
        (lambda d: d["graphs"][1].pop("forward"), ["graphs", 1]),
        (lambda d: d["graphs"][0]["ops"][0]["args"].__setitem__(0, {"w": 1}), ["graphs", 0, "ops", 0, "args", 0]),
        (lambda d: d["inputs"][0].update(fill={"kind": "tokens"}), ["inputs", 0, "fill"]),
    ],
)
def test_json_schema_refuses_what_is_wrong(change: Any, where: list[Any]) -> None:
    document = copy.deepcopy(_document("mlp-8x4096"))
    change(document)
    errors = list(Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(document))
    assert [error.instance_path for error in errors] == [where]


@pytest.mark.parametrize("name", NAMES)
def test_readme_holds_the_command(name: str) -> None:
    assert f"```\n{_document(name)['recorder']['command']}\n```" in (TRACES / name / "README.md").read_text()


@pytest.mark.parametrize("name", BIG)
def test_big_trace_is_half_precision_flash_and_mincut(name: str) -> None:
    options = _document(name)["options"]
    assert (options["batch"], options["sequence"]) == BIG[name]
    assert (options["dtype"], options["attention"], options["partitioner"]) == ("bfloat16", "flash", "mincut")


def test_default_partition_differs_from_qwen3_in_the_partitioner_alone() -> None:
    options = _document("qwen3-8b-default-partition")["options"]
    assert options == {**_document("qwen3-8b")["options"], "partitioner": "default"}


@pytest.mark.parametrize("name", WITH_CUDNN)
def test_kernels_of_cudnn_are_the_only_difference(name: str) -> None:
    options = _document(name.removesuffix("-cudnn"))["options"]
    assert options["attention"] == WITH_CUDNN[name]
    assert _document(name)["options"] == {**options, "attention": "cudnn"}


def test_autocast_differs_from_llama_in_its_dtypes_alone() -> None:
    options = _document("llama-3.2-1b-autocast")["options"]
    assert options == {**_document("llama-3.2-1b")["options"], "dtype": "float32", "autocast": "bfloat16"}


def test_tiny_llama_is_float32_for_the_cpu() -> None:
    options = _document("tiny-llama")["options"]
    assert (options["dtype"], options["attention"]) == ("float32", "math")


@pytest.mark.parametrize(("ranks", "divided"), [(2, {1750, 350}), (3, set()), (4, set())])
def test_shards_of_tiny_llama_need_padding(ranks: int, divided: set[int]) -> None:
    """Elements: 97 * 35 = 3395, 50 * 35 = 1750, 10 * 35 = 350, 53 * 35 = 1855 and 35."""
    document = _document("tiny-llama")
    elements = {prod(document["values"][entry["value"]]["shape"]) for entry in document["params"]}
    assert elements == {3395, 1750, 350, 1855, 35}
    assert {count for count in elements if count % ranks == 0} == divided


def test_qwen3_uses_399_parameters_forward_and_398_backward() -> None:
    """36 layers of 11, embedding, norm, head; the embedding is not needed to differentiate it."""
    document = _document("qwen3-8b")
    assert len(document["params"]) == 36 * 11 + 3 == 399
    assert len(_params_used(document, "forward")) == 399
    unused = {entry["name"] for entry in document["params"]} - {
        entry["name"] for entry in document["params"] if entry["value"] in _params_used(document, "backward")
    }
    assert unused == {"model.embed_tokens.weight"}


@pytest.mark.parametrize(("name", "layers"), [("llama-3.2-1b", 16), ("llama-3-8b", 32), ("qwen3-8b", 36), ("mistral-7b", 32), ("gpt2", 12)])
def test_each_layer_has_one_attention_kernel_each_way(name: str, layers: int) -> None:
    document = _document(name)
    for graph, operator in zip(document["graphs"], ("attention(", "attention_backward(")):
        flash = f"aten::_scaled_dot_product_flash_{operator}"
        calls = [op for op in graph["ops"] if document["schemas"][op["schema"]].startswith(flash)]
        assert len(calls) == layers


@pytest.mark.parametrize("name", ["llama-3.2-1b", "llama-3-8b", "qwen3-8b", "mistral-7b"])
def test_no_parameter_is_saved_for_the_backward(name: str) -> None:
    """ZeRO-3 frees gathered parameters after the forward: nothing saved may share their storage."""
    document = _document(name)
    storage = [value["storage"] for value in document["values"]]
    saved = {storage[output["value"]] for output in document["graphs"][0]["outputs"] if output["kind"] == "saved"}
    assert not saved & {storage[entry["value"]] for entry in document["params"]}
