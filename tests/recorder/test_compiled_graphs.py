"""The table of which workloads Inductor lowers, beside the records that are committed."""

from __future__ import annotations

import compile_workloads
import pytest
from compile_workloads import LINES, PAGE, TRACES, lines, page
from dcrecord.graph_file import COMPILED_FILES, GRAPH_FILE, read_document


def test_page_is_made_of_the_lines() -> None:
    assert PAGE.read_text() == page(lines())


def test_every_line_is_of_a_workload_and_its_graph_is_made_again() -> None:
    assert len(LINES.read_text().splitlines()) == len(lines())
    for name, line in lines().items():
        assert (TRACES / name).is_dir()
        assert line.get("differ", []) == [], name


@pytest.mark.parametrize("form", COMPILED_FILES)
def test_committed_forms_are_what_the_lines_say(form: str) -> None:
    found = {path.parent.name: path for path in TRACES.glob(f"*/{COMPILED_FILES[form]}")}
    for name in found.keys() & lines().keys():
        whole = read_document(TRACES / name / GRAPH_FILE)
        assert compile_workloads.facts_of(found[name], whole) == lines()[name][form]


def test_reasons_are_read_from_what_the_recorder_says() -> None:
    said = (
        "dcrecord: building net\n"
        "dcrecord: not compiled for zero3, the ATen graph stands: Inductor's line X has no form\n"
        "dcrecord: wrote net/graph.json.gz\n"
    )
    assert compile_workloads.reason_of("zero3", said, 0, 9) == "Inductor's line X has no form"
    assert compile_workloads.reason_of("zero12", said, -9, 9) == "not done after 9 s"
    assert compile_workloads.reason_of("zero12", "dcrecord: error: no such file", 2, 9) == "dcrecord: error: no such file"
    alone = "dcrecord: not compiled, the ATen graph stands alone: too odd\n"
    assert compile_workloads.reason_of("zero12", alone, 0, 9) == "too odd"
