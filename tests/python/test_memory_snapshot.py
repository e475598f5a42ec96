"""Snapshots of the predicted allocator are what torch's own viewer reads, and peak where simulate says."""

import collections
import pickle

import pytest

viz = pytest.importorskip("torch.cuda._memory_viz")

GROWS = {"segment_alloc", "segment_map"}
SHRINKS = {"segment_free", "segment_unmap"}
CASES = {
    "one stream": ["traces/tiny-llama", "--plan", "zero3"],
    "streams that wait": ["traces/llama-3.2-1b", "--plan", "zero3-deepcompile"],
    "expandable": ["traces/qwen2.5-1.5b", "--plan", "zero2", "--set", "allocator=expandable_segments"],
}


def peak(events, grows, shrinks):
    now = most = 0
    for event in events:
        now += event["size"] * ((event["action"] in grows) - (event["action"] in shrinks))
        most = max(most, now)
    return most


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def predicted(request, tmp_path_factory):
    """The words of a step, the file, and the result."""
    return request.param, tmp_path_factory.mktemp("snapshot") / "step.pickle"


def taken(program, words, path, *more):
    result = program.document("simulate", *words, "--cluster", "h200-8", "--memory-snapshot", path, *more)
    with open(path, "rb") as file:
        return result, pickle.load(file)


def test_peaks_are_those_of_simulate(program, predicted):
    result, snapshot = taken(program, *predicted)
    (events,) = snapshot["device_traces"]
    assert peak(events, GROWS, SHRINKS) == result["peak_reserved_bytes"]
    assert peak(events, {"alloc"}, {"free_requested"}) == result["peak_live_bytes"]
    assert [event["time_us"] for event in events] == sorted(event["time_us"] for event in events)


def test_segments_are_what_the_events_leave(program, predicted):
    _, snapshot = taken(program, *predicted)
    (events,) = snapshot["device_traces"]
    left = collections.Counter()
    alive = {}
    for event in events:
        left["reserved"] += event["size"] * ((event["action"] in GROWS) - (event["action"] in SHRINKS))
        if event["action"] == "alloc":
            assert event["addr"] not in alive
            alive[event["addr"]] = event["size"]
            assert len(event["frames"]) == 1
        elif event["action"] == "free_completed":
            assert alive.pop(event["addr"]) == event["size"]
    assert left["reserved"] == sum(segment["total_size"] for segment in snapshot["segments"])
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    assert alive == {b["address"]: b["requested_size"] for b in blocks if b["state"] != "inactive"}
    for segment in snapshot["segments"]:
        ends = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == ends
            ends += block["size"]
        assert ends == segment["address"] + segment["total_size"] < 2**53  # the viewer's numbers are exact


def test_torch_draws_it(program, predicted):
    _, snapshot = taken(program, *predicted)
    assert f"segments: {len(snapshot['segments'])}\n" in viz.segsum(snapshot)
    assert viz.trace(snapshot).startswith("Device 0")
    assert "snapshot.pickle" in viz.trace_plot(snapshot)


def test_it_stops_where_memory_runs_out(program, tmp_path):
    words = ["traces/tiny-llama", "--plan", "zero3", "--set", "reduce_bucket=2000000000 elements",
             "--cluster-set", "gpu.memory=2500 MB"]
    result, snapshot = taken(program, words, tmp_path / "step.pickle")
    last = snapshot["device_traces"][0][-1]
    assert result["outcome"] == "out_of_memory"
    assert last["action"] == "oom" and last["size"] == result["stop"]["requested_bytes"] > last["device_free"]


def test_the_same_question_gives_the_same_bytes(program, tmp_path):
    first, second = (tmp_path / name for name in ("a.pickle", "b.pickle"))
    for path in (first, second):
        taken(program, CASES["one stream"], path)
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_that_is_missing_is_refused(program, tmp_path):
    message = program.error(
        "simulate", *CASES["one stream"], "--cluster", "h200-8", "--memory-snapshot", tmp_path / "none" / "a.pickle"
    )
    assert "--memory-snapshot" in message
