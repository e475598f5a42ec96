"""dc-launches/1 (docs/reference/formats.md): a schedule as launches of gathers before first uses of parameters."""

from __future__ import annotations

import gzip
import lzma
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcsim_deepspeed.errors import PlanError

FORMAT = "dc-launches/1"
DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True)
class Launch:
    """Gathers that are issued together before the first use of parameter `before`; None: as the graph starts."""

    before: str | None
    params: tuple[str, ...]


@dataclass(frozen=True)
class GraphLaunches:
    """The launches of one graph, and its fingerprint: the parameters that it uses, by first use."""

    direction: str
    first_uses: tuple[str, ...]
    launches: tuple[Launch, ...]

    def part_of(self, used: Iterable[str]) -> GraphLaunches:
        """What of this holds for a graph that uses only these parameters: a piece of it behind a graph break.

        A launch before the first use of a parameter of another piece is issued as the piece starts.
        """
        here = set(used)
        launches = []
        for launch in self.launches:
            params = tuple(name for name in launch.params if name in here)
            if params:
                launches.append(Launch(launch.before if launch.before in here else None, params))
        return GraphLaunches(self.direction, tuple(name for name in self.first_uses if name in here), tuple(launches))


@dataclass(frozen=True)
class Settings:
    """What DeepSpeed reads of its configuration: elements of a reduce bucket, two buckets or one; and what the
    prediction is for."""

    reduce_bucket_size: int
    double_buffer: bool
    gradient_accumulation_steps: int
    gradient_clipping: float | None


@dataclass(frozen=True)
class Plan:
    """A whole document. Times are in ns, memory in bytes.

    digest   SHA-256 of the document, the same on ranks that have the same plan
    """

    digest: str
    workload: str
    gpu: str
    ranks: int
    settings: Settings
    step_time_ns: int
    peak_reserved_bytes: int
    persistent: frozenset[str]
    graphs: tuple[GraphLaunches, ...]

    def params(self) -> set[str]:
        """All parameters that some graph uses."""
        return {name for graph in self.graphs for name in graph.first_uses}

    def find(self, direction: str, used: Iterable[str]) -> GraphLaunches | None:
        """The graph of this direction with exactly these parameters; or the part of the only one that has them all."""
        names = set(used)
        graphs = [graph for graph in self.graphs if graph.direction == direction]
        for graph in graphs:
            if set(graph.first_uses) == names:
                return graph
        wider = [graph for graph in graphs if names < set(graph.first_uses)]
        return wider[0].part_of(names) if len(wider) == 1 else None


def read_plan(source: str | Path | dict[str, Any]) -> Plan:
    """Reads a file (".gz" and ".xz": compressed), or takes a document. Throws PlanError."""
    if isinstance(source, dict):
        return _plan_of(source, "plan")
    path = Path(source)
    try:
        decompress = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
        document = json.loads(decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
        raise PlanError(f"{path}: expected a file that dc-sim search --save-deepspeed-plan wrote ({error})") from error
    return _plan_of(document, str(path))


class _Reader:
    """Fields of an object, each checked; `where` the object stands."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise PlanError(f"{where}: expected an object, found {type(value).__name__}")
        self._value = value
        self._where = where

    def get(self, key: str, kind: type | tuple[type, ...], what: str) -> Any:
        where = f"{self._where}: {key}"
        if key not in self._value:
            raise PlanError(f"{where} is missing: expected {what}")
        value = self._value[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise PlanError(f"{where}: expected {what}, found {json.dumps(value)[:60]}")
        return value

    def count(self, key: str, least: int = 0) -> int:
        value = self.get(key, int, f"a whole number of at least {least}")
        if value < least:
            raise PlanError(f"{self._where}: {key}: expected at least {least}, found {value}")
        return value

    def names(self, key: str) -> tuple[str, ...]:
        values = self.get(key, list, "a list of parameter names")
        if not all(isinstance(value, str) for value in values) or len(set(values)) != len(values):
            raise PlanError(f"{self._where}: {key}: expected parameter names, each once")
        return tuple(values)

    def object(self, key: str) -> _Reader:
        return _Reader(self.get(key, dict, "an object"), f"{self._where}: {key}")

    def objects(self, key: str) -> list[_Reader]:
        values = self.get(key, list, "a list of objects")
        return [_Reader(value, f"{self._where}: {key}[{index}]") for index, value in enumerate(values)]

    def fail(self, problem: str) -> PlanError:
        return PlanError(f"{self._where}: {problem}")


def _plan_of(document: Any, where: str) -> Plan:
    reader = _Reader(document, where)
    if (found := reader.get("format", str, FORMAT)) != FORMAT:
        raise reader.fail(f"format: expected {FORMAT}, found {found}")
    predicted = reader.object("predicted")
    settings = reader.object("settings")
    text = json.dumps(document, sort_keys=True)
    plan = Plan(
        digest=hashlib.sha256(text.encode()).hexdigest(),
        workload=reader.object("workload").get("name", str, "a name"),
        gpu=reader.object("cluster").get("gpu", str, "a GPU's name"),
        ranks=reader.count("ranks", 1),
        settings=Settings(
            settings.count("reduce_bucket_size", 1),
            settings.get("double_buffer", bool, "true or false"),
            settings.count("gradient_accumulation_steps", 1),
            settings.get("gradient_clipping", (int, float, type(None)), "a norm or null"),
        ),
        step_time_ns=predicted.count("step_time_ns"),
        peak_reserved_bytes=predicted.count("peak_reserved_bytes"),
        persistent=frozenset(reader.names("persistent")),
        graphs=tuple(_graph_of(each) for each in reader.objects("graphs")),
    )
    if unknown := sorted(plan.persistent - plan.params()):
        raise reader.fail(f"persistent: no graph uses {unknown[0]}")
    return plan


def _graph_of(reader: _Reader) -> GraphLaunches:
    direction = reader.get("direction", str, " or ".join(DIRECTIONS))
    if direction not in DIRECTIONS:
        raise reader.fail(f"direction: expected {' or '.join(DIRECTIONS)}, found {direction}")
    first_uses = reader.names("first_uses")
    launches = tuple(
        Launch(each.get("before", (str, type(None)), "a parameter or null"), each.names("params"))
        for each in reader.objects("launches")
    )
    known, seen = set(first_uses), set()
    for launch in launches:
        for name in (*launch.params, *([launch.before] if launch.before is not None else [])):
            if name not in known:
                raise reader.fail(f"launches: {name} is not among first_uses")
        for name in launch.params:
            if name in seen:
                raise reader.fail(f"launches: {name} is gathered twice")
            seen.add(name)
    return GraphLaunches(direction, first_uses, launches)
