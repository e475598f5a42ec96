"""The table of which workloads Inductor lowers, beside the records that are committed."""

from __future__ import annotations

from typing import Any

import compile_workloads
import pytest
from compile_workloads import LINES, PAGE, TRACES, lines, page
from compiled_plausibility import beside, peak
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document


# Recorded and measured before attention that is written out kept its causal mask: plain layers of these graphs have none.
OLDER = {name: [GRAPH_FILE] for name in ("gpt-oss-4", "gpt-neo-1.3b", "gemma-2-2b")}
# Inductor pads products of 180 columns to 184.
PADDED = {"swin2sr": 1.01}
# The gradient of float32 logits, 2 GiB, beside 15 GiB.
ALIVE = {"llama-3-8b": 1.15}


def test_page_is_made_of_the_lines() -> None:
    assert PAGE.read_text() == page(lines())


def test_every_line_is_of_a_workload_and_its_graph_is_made_again() -> None:
    assert len(LINES.read_text().splitlines()) == len(lines())
    for name, line in lines().items():
        assert (TRACES / name).is_dir()
        assert line.get("differ", []) == OLDER.get(name, []), name


@pytest.mark.parametrize("form", COMPILED_FILES)
def test_forms_do_the_work_of_their_graphs(form: str) -> None:
    """Products are no less; what is kept may be a bit more, where a cheaper part of the graph is saved."""
    for name, line in lines().items():
        if "refused" not in line[form]:
            ratios = line[form]["beside"]
            assert 0.999 <= ratios["flops"] <= PADDED.get(name, 1.001), name
            assert 0.3 < ratios["saved"] <= 1.1 and 0.3 < ratios["peak"] <= ALIVE.get(name, 1.1), name


@pytest.mark.parametrize("form", COMPILED_FILES)
def test_committed_forms_are_what_the_lines_say(form: str) -> None:
    found = {path.parent.name: path for path in TRACES.glob(f"*/{COMPILED_FILES[form]}")}
    for name in found.keys() & lines().keys():
        whole = read_document(TRACES / name / GRAPH_FILE)
        assert compile_workloads.facts_of(found[name], whole) == lines()[name][form]


def test_a_form_that_does_less_or_is_of_another_model_is_seen() -> None:
    form, whole = (read_document(TRACES / "tiny-llama" / file) for file in (COMPILED_FILES["zero3"], GRAPH_FILE))
    assert beside(form, whole)["flops"] == 1.0
    ops = form["graphs"][1]["ops"]
    product = next(op for op in ops if "schema" in op and form["schemas"][op["schema"]].startswith("aten::mm("))
    ops.remove(product)
    assert beside(form, whole)["flops"] < 1.0
    form["graphs"][1]["outputs"].pop()
    with pytest.raises(ValueError, match="gradients differ from the ATen graph's: "):
        beside(form, whole)


def test_memory_lives_from_its_first_use_to_its_last() -> None:
    def value(storage: int) -> dict[str, Any]:
        return {"storage": storage, "shape": [1]}

    def op(read: int, made: int) -> dict[str, Any]:
        return {"args": [{"v": read}], "outputs": [made]}

    outputs = [{"kind": "loss", "value": 3}]
    graph = {"ops": [op(0, 1), op(1, 2), op(2, 3)], "outputs": outputs}
    tables: dict[str, Any] = {"params": [], "buffers": [], "inputs": [{"value": 0}]}
    document = {**tables, "values": [value(each) for each in range(4)], "storages": [1000, 4, 20, 300], "graphs": [graph]}
    assert peak(document) == 320


def test_reasons_are_read_from_what_the_recorder_says() -> None:
    said = (
        "dcrecord: building net\n"
        "dcrecord: not compiled for zero3, the ATen graph stands: Inductor's line X has no form\n"
        "dcrecord: wrote net/graph.json.xz\n"
    )
    assert compile_workloads.reason_of("zero3", said, 0, 9) == "Inductor's line X has no form"
    assert compile_workloads.reason_of("zero12", said, -9, 9) == "not done after 9 s"
    assert compile_workloads.reason_of("zero12", "dcrecord: error: no such file", 2, 9) == "dcrecord: error: no such file"
    alone = "dcrecord: not compiled, the ATen graph stands alone: too odd\n"
    assert compile_workloads.reason_of("zero12", alone, 0, 9) == "too odd"
