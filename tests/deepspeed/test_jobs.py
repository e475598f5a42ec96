"""Jobs on two CPU ranks: recorded, searched, and trained with what was found and with plans drawn at random. A sample;
matrix.py runs everything."""

import copy
import json
import os

import pytest

pytest.importorskip("deepspeed")
import jsonschema_rs  # noqa: E402

import plan_checks  # noqa: E402
from dcrecord.graph_file import read_document  # noqa: E402
from launching import ROOT, compare, dc_sim, plan_of, predict, run_jobs, search  # noqa: E402
from random_plans import random_plan  # noqa: E402

# Of float32 losses of some units: the stand-in adds the gradients of micro-steps in another order than ZeRO-3.
ACCUMULATED = 1e-5

pytestmark = pytest.mark.skipif(not os.access(dc_sim(), os.X_OK), reason=f"{dc_sim()} is not built")


def validate(name, document):
    """Raises where a document does not fit the schema of its format."""
    schemas = [json.loads(path.read_text()) for path in (ROOT / "docs/reference/schemas").glob("*.json")]
    registry = jsonschema_rs.Registry([(schema["$id"], schema) for schema in schemas])
    schema = next(schema for schema in schemas if schema["$id"] == f"{name}.schema.json")
    jsonschema_rs.Draft202012Validator(schema, registry=registry).validate(document)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Results of eager and recording jobs, the folder, and the plan that a search found for the recording."""
    folder = tmp_path_factory.mktemp("recorded")
    results = run_jobs(
        [
            {"name": "eager"},
            {"name": "eager, two micro-steps", "accumulation": 2},
            {"name": "record", "mode": "record", "folder": str(folder / "own")},
            {
                "name": "record compiled",
                "mode": "record",
                "folder": str(folder / "compiled"),
                "backend": "inductor",
                "kernels": False,
                "steps": 1,
            },
            {"name": "record dropout", "model": "dropout", "mode": "record", "folder": str(folder / "dropout"), "steps": 1},
        ],
        folder,
    )
    found = search(folder / "own", folder / "found.json") if (folder / "own").exists() else None
    return results, folder, found


@pytest.fixture(scope="module")
def trained(recorded):
    """Results of jobs with plans, and the plans."""
    _, folder, found = recorded
    plans = {"found": found, "drawn": random_plan(found, 1), "drawn two": random_plan(found, 2)}
    plans["other ranks"] = {**copy.deepcopy(found), "ranks": 4}
    plans["other model"] = copy.deepcopy(found)
    plans["other model"]["graphs"][0]["first_uses"].append("blocks.2.up.weight")
    plans["rank0"], plans["rank1"] = plans["drawn"], plans["drawn two"]
    for name, plan in plans.items():
        (folder / f"{name}.json").write_text(json.dumps(plan))
    predict(folder / "own", plan_of(folder / "found.json"), folder / "predicted.json")
    job = {"mode": "plan", "steps": 3}
    beside = {"predicted": str(folder / "predicted.json"), "measured": str(folder / "measured.json")}
    path = lambda name: str(folder / f"{name}.json")  # noqa: E731
    results = run_jobs(
        [
            {**job, "name": "found", "plan": path("found"), "install": True, **beside},
            {**job, "name": "drawn", "plan": path("drawn")},
            {**job, "name": "two micro-steps", "plan": path("drawn two"), "accumulation": 2},
            {**job, "name": "other ranks", "plan": path("other ranks")},
            {**job, "name": "other model", "plan": path("other model"), "steps": 0},
            {**job, "name": "another graph", "model": "three-layers", "plan": path("found"), "steps": 1},
            {**job, "name": "strict", "plan": path("other model"), "strict": True},
            {**job, "name": "strict graph", "model": "three-layers", "plan": path("found"), "strict": True},
            {**job, "name": "version", "plan": path("found"), "version": "0.20.0", "steps": 0},
            {**job, "name": "off", "plan": path("found"), "compile_section": {"deepcompile": False}, "steps": 0},
            {**job, "name": "ranks differ", "plan": str(folder / "rank{rank}.json"), "steps": 0},
            {**job, "name": "feature", "plan": path("found"), "compile_section": {"sync_before_reduce": True}, "steps": 0},
        ],
        folder,
    )
    return results, plans


def test_recording_changes_no_loss_and_is_read(recorded):
    results, folder, found = recorded
    assert results["record"]["losses"] == results["eager"]["losses"]
    assert (folder / "own/graph.json.xz").exists()
    assert found["workload"]["name"] == "own"
    validate("launches", found)


def test_a_compiled_job_is_recorded_too(recorded):
    """Inductor's decompositions read a layer norm's bias in no backward, and behind its weight. Its kernels are recorded."""
    _, folder, found = recorded
    form = read_document(folder / "compiled/graph-inductor-zero3.json.xz")
    validate("graph", form)
    assert form["kernels"] and form["backend"]["stages"] == [3]
    assert not (folder / "own/graph-inductor-zero3.json.xz").exists()
    predict(folder / "compiled", "zero3-deepcompile", folder / "compiled-step.json")
    assert json.loads((folder / "compiled-step.json").read_text())["plan"]["backend"] == "inductor"
    forward, backward = (graph["first_uses"] for graph in search(folder / "compiled", folder / "compiled.json", 1)["graphs"])
    assert set(forward) == set(found["graphs"][0]["first_uses"])
    norms = {name for name in found["graphs"][1]["first_uses"] if name.endswith("norm.bias")}
    assert set(backward) == set(found["graphs"][1]["first_uses"]) - norms


def test_what_cannot_be_recorded_is_named_and_trains(recorded):
    results, folder, _ = recorded
    assert "dropout" in results["record dropout"]["report"]["reason"]
    assert len(results["record dropout"]["losses"]) == 1
    assert not (folder / "dropout").exists() or not list((folder / "dropout").iterdir())
    assert "dc-sim: this job is not recorded: " in results["output"]


def test_a_running_job_is_measured(recorded, trained):
    _, folder, _ = recorded
    measured = json.loads((folder / "measured.json").read_text())
    validate("result", measured)
    predicted = json.loads((folder / "predicted.json").read_text())
    assert [measured[key] for key in ("workload", "plan", "gpus")] == [predicted[key] for key in ("workload", "plan", "gpus")]
    assert len(measured["step_times_ns"]) == 2 and min(measured["step_times_ns"]) > 0
    losses = trained[0]["found"]["losses"]
    assert measured["losses"] == losses[:1]
    told = compare(folder / "own", folder / "measured.json")
    assert "step time" in told and "compute" not in told
    assert f": {folder}/measured.json" in trained[0]["output"]


@pytest.mark.parametrize("name", ["found", "drawn"])
def test_a_plan_trains_as_eager_and_runs_as_planned(recorded, trained, name):
    result, plan = trained[0][name], trained[1][name]
    assert result["losses"] == recorded[0]["eager"]["losses"]
    assert plan_checks.differences(plan, result["log"]) == []
    assert result["report"]["applied"], result["report"]
    assert [graph["moved"] for graph in result["report"]["graphs"]] == [[], []]
    assert result["settings"] == {
        "reduce_bucket_size": plan["settings"]["reduce_bucket_size"],
        "double_buffer": plan["settings"]["double_buffer"],
    }
    assert (result["report"]["kept_bytes"] > 0) == bool(plan["persistent"])


def test_micro_steps_share_what_stays(recorded, trained):
    result, plan = trained[0]["two micro-steps"], trained[1]["drawn two"]
    assert result["losses"] == pytest.approx(recorded[0]["eager, two micro-steps"]["losses"], rel=ACCUMULATED)
    assert plan_checks.differences(plan, result["log"], gathered=frozenset(plan["persistent"])) == []
    assert "the prediction is for 1 micro-steps, the job has 2" in result["report"]["notes"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other ranks", "the plan is for 4 data-parallel ranks, the job has 2"),
        ("other model", "the plan is for another model (own): 1 of its 14 parameters"),
        ("another graph", "the job's forward graph uses 5 parameters that the plan's does not (blocks.2.down.weight"),
        ("version", "DeepSpeed 0.20.0 is not tested"),
        ("off", "DeepCompile is off"),
        ("ranks differ", "ranks have different plans"),
        ("feature", "compile.sync_before_reduce is on"),
    ],
)
def test_another_job_trains_with_deepspeeds_schedule(trained, name, words):
    results, _ = trained
    assert "error" not in results[name], results[name]
    assert words in results[name]["report"]["reason"]
    assert not results[name]["report"]["applied"]
    # The ranks share one output: a line may begin with what the other one has just printed.
    lines = [line for line in results["output"].splitlines() if "dc-sim: " in line and words in line]
    assert lines, results["output"]


def test_a_refused_plan_changes_no_loss(recorded, trained):
    assert trained[0]["other ranks"]["losses"] == recorded[0]["eager"]["losses"]


@pytest.mark.parametrize("name", ["strict", "strict graph"])
def test_strict_raises(trained, name):
    assert trained[0][name]["error"] == "PlanMismatch"
