"""Every answer of the module is the program's, to the last digit."""

import json
import sys

import dcsim
import pytest
from dcsim.reading import plain_document

pytestmark = pytest.mark.filterwarnings("ignore::dcsim.InputNote")

WORKLOADS = ["tiny-llama", "mlp-8x4096", "gpt2", "resnet-50", "bert-large"]
DEEPSPEED = {
    "bf16": {"enabled": "auto"},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": 3,
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7},
    "gradient_clipping": 1.0,
}
SPEC = {"format": "dc-plan-spec/1", "policy": "plain-1", "stage": 3, "gather_ahead": 4}
# Of each: the plan, what changes it, and the cluster.
PLANS = {
    "name": ("zero3-deepcompile", {}, "h200-4"),
    "file": ("configs/plans/zero1-eager.yaml", {"gradient_accumulation_steps": 2}, "configs/clusters/h100-4.yaml"),
    "spec": (SPEC, {"allocator": "expandable_segments", "stage": 2, "gather_ahead": 0}, "h200-8"),
    "deepspeed": (DEEPSPEED, {}, "h200-2"),
}


def words_of(plan, changes, folder):
    """The plan as options of the program; a document lies in a file."""
    if isinstance(plan, dict):
        (folder / "plan.json").write_text(json.dumps(plan))
        plan = folder / "plan.json"
    return ["--plan", plan, *(word for key, value in changes.items() for word in ("--set", f"{key}={value}"))]


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_step_is_what_the_program_says(program, tmp_path, workload, kind):
    plan, changes, cluster = PLANS[kind]
    words = ["simulate", f"traces/{workload}", "--cluster", cluster, *words_of(plan, changes, tmp_path)]
    expected = program.document(*words)
    result = dcsim.simulate(f"traces/{workload}", cluster=cluster, plan=plan, set=changes)
    assert result.to_dict() == expected
    assert (result.step_time_ns, result.verdict) == (expected["step_time_ns"], expected["verdict"])
    assert result.fits == program.run(*words).stdout.startswith("fits:")


def test_options_and_documents(program):
    options = ["--gpus", 2, "--batch", 2, "--cluster-set", "gpu.memory=2500 MB", "--no-profile"]
    expected = program.document("simulate", "traces/tiny-llama", "--cluster", "h200-4", "--plan", "zero3", *options)
    assert expected["outcome"] == "out_of_memory"
    given = {"gpus": 2, "batch": 2, "cluster_set": {"gpu.memory": "2500 MB"}, "profile": False}
    result = dcsim.simulate(dcsim.load("traces/tiny-llama"), cluster="h200-4", plan="zero3", **given)
    assert result.to_dict() == expected
    assert not result.fits and result.stop.requested_bytes > 0


def test_notes_are_warnings(program):
    expected = program.run("simulate", "traces/tiny-llama", "--cluster", "h200-2", "--plan", "zero3-eager").stderr
    with pytest.warns(dcsim.InputNote) as noted:
        dcsim.simulate("traces/tiny-llama", cluster="h200-2", plan="zero3-eager")
    assert "".join(f"{note.message}\n" for note in noted) == expected != ""


def test_a_result_holds_a_plan_and_a_cluster(program):
    first = dcsim.simulate("traces/tiny-llama", cluster="h200-2", plan="zero3-deepcompile")
    again = dcsim.simulate("traces/tiny-llama", cluster=first.cluster, plan=first.plan)
    assert again == first


FAULTS = [
    ({"workload": "traces/tiny-lama", "cluster": "h200-4", "plan": "zero3"}, {}),
    ({"workload": "traces/tiny-llama", "cluster": "h200-44", "plan": "zero3"}, {}),
    ({"workload": "traces/tiny-llama", "cluster": "h200-4", "plan": "zero33"}, {}),
    ({"workload": "traces/tiny-llama", "cluster": "h200-4", "plan": "zero3"}, {"stag": 2}),
    ({"workload": "traces/tiny-llama", "cluster": "h200-4", "plan": {"policy": "plain-1", "stage": 5}}, {}),
    ({"workload": "traces/tiny-llama", "cluster": "h200-4", "plan": {"zero_optimization": {"stag": 3}}}, {}),
    ({"workload": "traces/tiny-llama", "cluster": {"format": "dc-cluster/1"}, "plan": "zero3"}, {}),
]


@pytest.mark.parametrize(("given", "changes"), FAULTS)
def test_errors_are_the_programs(program, given, changes):
    texts = {key: json.dumps(value) if isinstance(value, dict) else value for key, value in given.items()}
    expected = program.error(
        "simulate", texts["workload"], "--cluster", texts["cluster"], "--plan", texts["plan"],
        *(word for key, value in changes.items() for word in ("--set", f"{key}={value}")),
    )
    with pytest.raises(dcsim.InputError) as caught:
        dcsim.simulate(**given, set=changes)
    assert str(caught.value) == expected
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("count", [0, -1, 2.5, True, 2**31])
def test_counts_are_whole_and_positive(program, count):
    with pytest.raises(dcsim.InputError, match="gpus: expected a whole number of at least 1, found"):
        dcsim.simulate("traces/tiny-llama", cluster="h200-4", plan="zero3", gpus=count)


def test_load_says_what_was_recorded(program):
    workload = dcsim.load("traces/qwen3-8b")
    assert (workload.name, workload.parameters, workload.tokens) == ("qwen3-8b", 8_190_735_360, 4096)
    assert workload.options["dtype"] == "bfloat16"
    with pytest.raises(dcsim.InputError, match="no such workload folder, did you mean 'qwen3-8b'"):
        dcsim.load("traces/qwen3-8bb")


def test_a_sweep_is_what_the_program_says(program):
    words = ["--vary", "stage=1,2,3", "--vary", "gpus=2,4", "--plan", "zero3-deepcompile", "--plan", "zero3-eager"]
    expected = program.document("sweep", "traces/tiny-llama", "--cluster", "h200-4", *words)
    plans = ["zero3-deepcompile", "zero3-eager"]
    answer = dcsim.sweep("traces/tiny-llama", cluster="h200-4", plan=plans, vary={"stage": [1, 2, 3], "gpus": [2, 4]})
    assert answer.to_dict() == expected
    frame = answer.to_frame()
    assert len(frame) == 12 and frame["gpus"].tolist()[:4] == [2, 2, 4, 4]
    assert frame["step_time_ns"].tolist() == [row["result"]["step_time_ns"] for row in expected["rows"]]


def nested(result):
    """A result as an answer of several holds it: the answer itself says the version."""
    return {"format": "dc-result/1", **plain_document(result)}


def test_a_fit_is_what_the_program_says(program):
    words = ["--cluster", "h200-2", "--cluster-set", "gpu.memory=3 GB", "--no-record"]
    expected = program.document("fit", "traces/tiny-llama", *words)
    answer = dcsim.fit("traces/tiny-llama", cluster="h200-2", cluster_set={"gpu.memory": "3 GB"}, record=False)
    assert not answer.now.result.fits
    assert nested(answer.now.result) == expected["now"]["result"]
    assert [list(each.changes) for each in answer.answers] == [each["changes"] for each in expected["answers"]]
    assert [nested(each.result) for each in answer.answers] == [each["result"] for each in expected["answers"]]
    assert [plain_document(each) for each in answer.untried] == expected["untried"]
    assert answer.to_frame()["step_time_ns"].tolist()[1:] == [each.result.step_time_ns for each in answer.answers]


def test_a_search_is_what_the_program_says(program):
    words = ["--cluster", "h200-4", "--schedules", 400, "--seed", 7, "--memory-limit", "3 GB"]
    expected = program.document("search", "traces/tiny-llama", *words)
    answer = dcsim.search("traces/tiny-llama", cluster="h200-4", schedules=400, seed=7, memory_limit=3_000_000_000)
    document = {"format": "dc-search/1", **plain_document(answer)}
    for timed in ("seconds", "schedules_per_second"):
        document.pop(timed), expected.pop(timed)
    assert expected.pop("versions") == answer.best.result.to_dict()["versions"]
    for each in [document["best"], *document["baselines"]]:
        each["result"] = {"format": "dc-result/1", **each["result"]}
    assert document == expected
    again = dcsim.simulate("traces/tiny-llama", cluster="h200-4", plan=answer.best.result.plan)
    assert again.step_time_ns == answer.front[0].step_time_ns == answer.to_frame()["step_time_ns"][0]


def test_frames_name_what_is_missing(program, monkeypatch):
    result = dcsim.simulate("traces/tiny-llama", cluster="h200-2", plan="zero3")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


def test_recording_gives_a_workload(program, tmp_path):
    pytest.importorskip("torch")
    workload = dcsim.record("mlp-2x64", tmp_path / "mlp", batch=4, dtype="float32")
    assert workload.parameters == 2 * 64 * 64 and workload.options["batch"] == 4
    assert dcsim.simulate(workload, cluster="h200-2", plan="zero3").fits
    with pytest.raises(dcsim.InputError, match="--batch"):
        dcsim.record("mlp-2x64", tmp_path / "other", batch="many")
