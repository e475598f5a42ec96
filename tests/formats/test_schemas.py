"""The JSON schemas of docs/reference/schemas: they hold for what dc-sim writes and for what is committed, and refuse
what is wrong. Needs dc-sim (DCSIM_BIN) and no torch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from documents import COMMITTED, ROOT, SCHEMAS, WRITTEN, dc_sim, written

NAMES = sorted(file.name.removesuffix(".schema.json") for file in SCHEMAS.iterdir())
SCHEMA = {name: json.loads((SCHEMAS / f"{name}.schema.json").read_text()) for name in NAMES}
REGISTRY = jsonschema_rs.Registry([(schema["$id"], schema) for schema in SCHEMA.values()])
VALIDATOR = {name: jsonschema_rs.Draft202012Validator(schema, registry=REGISTRY) for name, schema in SCHEMA.items()}
# Others refer to their parts.
PARTS = {"common", "plan-options"}
# Objects whose keys no format fixes, by the end of their path.
OPEN = re.compile(
    r"(/versions|/recorder|graph/options|/backend/settings|/kernels/\*/(passes|config|configs/\*)|search/deepspeed/config|/rows/\*/values)(/.*)?$"
)
# Keys of Chrome's trace format, which has a documentation of its own.
CHROME = {"displayTimeUnit", "traceEvents", "pid", "tid", "cat", "bp", "sort_index"}
MOST_FAULTS = 5  # shown
COMMITTED_EXAMPLES = 2

built = pytest.mark.skipif(not os.access(dc_sim(), os.X_OK), reason=f"{dc_sim()} is not built")


def faults(name: str, document: Any) -> list[str]:
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}" for error in VALIDATOR[name].iter_errors(document)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("written")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_says_what_it_is(name):
    jsonschema_rs.meta.validate(SCHEMA[name])
    assert SCHEMA[name]["$id"] == f"{name}.schema.json"
    assert SCHEMA[name]["description"].endswith(".") and SCHEMA[name]["title"]


def test_every_schema_has_documents_and_a_link():
    pages = "".join((ROOT / "docs/reference" / page).read_text() for page in ("formats.md", "plans.md", "clusters.md"))
    assert {*COMMITTED, *(name for name, _, _ in WRITTEN)} == set(NAMES) - PARTS
    assert [name for name in NAMES if f"(schemas/{name}.schema.json)" not in pages] == []


def keys_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from keys_of(part)


def test_every_key_is_documented():
    pages = [*(ROOT / "docs/reference").glob("*.md"), ROOT / "docs/design/search.md"]
    words = {word for page in pages for word in re.findall(r"[\w-]*\w", page.read_text())}
    assert {key for name in NAMES for key in keys_of(SCHEMA[name])} - words - CHROME == set()


@built
@pytest.mark.parametrize(("name", "words"), [pytest.param(name, words, id=f"{name}, {what}") for name, what, words in WRITTEN])
def test_what_dc_sim_writes_fits(name, words, folder):
    assert faults(name, written(words, folder))[:MOST_FAULTS] == []


@pytest.mark.parametrize("name", COMMITTED)
def test_what_is_committed_fits(name):
    count, found = 0, []
    for where, document in COMMITTED[name]():
        count += 1
        found += [f"{where}: {fault}" for fault in faults(name, document)]
    assert found[:MOST_FAULTS] == []
    assert count


def examples(name: str, folder: Path) -> Iterator[Any]:
    """A few documents of a format, whose keys together are as many as may be."""
    yield from (written(words, folder) for each, _, words in WRITTEN if each == name)
    yield from (document for _, document in islice(COMMITTED.get(name, tuple)(), COMMITTED_EXAMPLES))


def places(value: Any, path: tuple = (), shape: str = "") -> Iterator[tuple[tuple, str]]:
    """Every value of a document: keys that lead to it, and the same with * for places of lists."""
    yield path, shape
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from places(item, (*path, key), f"{shape}/{'*' if isinstance(value, list) else key}")


def at(document: Any, path: tuple) -> Any:
    for key in path:
        document = document[key]
    return document


def accepts_damage(name: str, document: Any, path: tuple) -> list[str]:
    """What is accepted although it is wrong: an unknown key in the object at a path, something else in its place."""
    accepted = []
    value = at(document, path)
    if isinstance(value, dict):
        value["no such key"] = 1
        accepted += ["an unknown key"] * VALIDATOR[name].is_valid(document)
        del value["no such key"]
    if path:
        parent = at(document, path[:-1])
        parent[path[-1]] = {"no such key": [[]]}
        accepted += ["another type"] * VALIDATOR[name].is_valid(document)
        parent[path[-1]] = value
    return accepted


@built
@pytest.mark.parametrize("name", sorted(set(NAMES) - PARTS))
def test_what_is_damaged_is_refused(name, folder):
    """At every depth an unknown key and a value of another type; at the top a key that is missing."""
    seen, accepted = set(), []
    for document in examples(name, folder):
        assert VALIDATOR[name].is_valid(document)
        for path, shape in places(document, shape=name):
            if shape not in seen and not OPEN.search(shape):
                seen.add(shape)
                accepted += [f"{shape}: {what}" for what in accepts_damage(name, document, path)]
        for key in SCHEMA[name]["required"]:
            if VALIDATOR[name].is_valid({each: value for each, value in document.items() if each != key}):
                accepted.append(f"{key} is missing")
    assert accepted[:MOST_FAULTS] == []
    assert len(seen) > len(SCHEMA[name]["required"]) >= 2
