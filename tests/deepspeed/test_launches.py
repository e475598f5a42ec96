"""dc-launches/1 files: what is read, and what is said of a damaged one."""

import copy
import gzip
import json
import lzma

import pytest

from dcsim_deepspeed.errors import PlanError
from dcsim_deepspeed.launches import Launch, read_plan

DOCUMENT = {
    "format": "dc-launches/1",
    "versions": {"dc-sim": "0.1.0"},
    "workload": {"name": "pair", "graph": "0" * 16},
    "ranks": 2,
    "cluster": {"name": "h200-2", "gpu": "NVIDIA H200"},
    "predicted": {
        "step_time_ns": 1500,
        "bound_ns": None,
        "peak_allocated_bytes": 10,
        "peak_reserved_bytes": 20,
        "peak_reserved_most_bytes": 20,
    },
    "settings": {
        "reduce_bucket_size": 1000,
        "double_buffer": True,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": None,
    },
    "persistent": ["a"],
    "graphs": [
        {
            "direction": "forward",
            "first_uses": ["a", "b", "c"],
            "launches": [{"before": None, "params": ["a", "b"]}, {"before": "b", "params": ["c"]}],
        },
        {"direction": "backward", "first_uses": ["c", "b"], "launches": [{"before": "c", "params": ["c", "b"]}]},
    ],
}


def changed(*path, value):
    document = copy.deepcopy(DOCUMENT)
    target = document
    for key in path[:-1]:
        target = target[key]
    if value is None:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return document


def test_files_and_documents_are_the_same_plan(tmp_path):
    (tmp_path / "plan.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "plan.json.gz").write_bytes(gzip.compress(json.dumps(DOCUMENT, indent=1).encode()))
    (tmp_path / "plan.json.xz").write_bytes(lzma.compress(json.dumps(DOCUMENT, indent=1).encode()))
    plans = [read_plan(DOCUMENT), *(read_plan(tmp_path / name) for name in ("plan.json", "plan.json.gz", "plan.json.xz"))]
    assert all(plan == plans[0] for plan in plans)
    assert plans[0].graphs[0].launches[1] == Launch("b", ("c",))
    assert plans[0].digest != read_plan(changed("ranks", value=4)).digest


def test_a_graph_is_found_by_its_parameters():
    plan = read_plan(DOCUMENT)
    assert plan.find("forward", ["c", "b", "a"]) is plan.graphs[0]
    assert plan.find("backward", ["a", "b", "c"]) is None
    assert plan.find("forward", ["a", "d"]) is None


def test_a_piece_behind_a_graph_break_gets_its_part():
    piece = read_plan(DOCUMENT).find("forward", ["b", "c"])
    assert piece.first_uses == ("b", "c")
    assert piece.launches == (Launch(None, ("b",)), Launch("b", ("c",)))
    # before the first use of a parameter of another piece: as this one starts
    assert read_plan(DOCUMENT).find("forward", ["c"]).launches == (Launch(None, ("c",)),)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "plan: expected an object, found list"),
        (changed("format", value="dc-plan/1"), "plan: format: expected dc-launches/1, found dc-plan/1"),
        (changed("ranks", value=None), "plan: ranks is missing"),
        (changed("ranks", value=True), "plan: ranks: expected a whole number"),
        (changed("ranks", value=0), "plan: ranks: expected at least 1, found 0"),
        (changed("settings", "double_buffer", value=1), "plan: settings: double_buffer: expected true or false"),
        (changed("persistent", value=["z"]), "plan: persistent: no graph uses z"),
        (changed("graphs", 0, "direction", value="sideways"), "plan: graphs[0]: direction: expected forward or backward"),
        (changed("graphs", 0, "first_uses", value=["a", "a"]), "plan: graphs[0]: first_uses: expected parameter names"),
        (changed("graphs", 1, "launches", 0, "before", value="z"), "plan: graphs[1]: launches: z is not among first_uses"),
        (changed("graphs", 1, "launches", 0, "params", value=["c", "b", "c"]), "launches[0]: params: expected"),
        (changed("graphs", 0, "launches", 1, "params", value=["a"]), "plan: graphs[0]: launches: a is gathered twice"),
    ],
)
def test_a_damaged_document_is_said(document, message):
    if isinstance(document, list):  # read_plan takes documents as dicts, files may hold anything
        from dcsim_deepspeed.launches import _plan_of

        with pytest.raises(PlanError, match="expected an object"):
            _plan_of(document, "plan")
        return
    with pytest.raises(PlanError) as raised:
        read_plan(document)
    assert message in str(raised.value)


def test_a_damaged_file_is_named(tmp_path):
    for name, data in (("absent.json", None), ("text.json", b"{"), ("bytes.json.gz", b"no gzip"), ("bytes.json.xz", b"no xz"), ("list.json", b"[]")):
        path = tmp_path / name
        if data is not None:
            path.write_bytes(data)
        with pytest.raises(PlanError, match=name):
            read_plan(path)
