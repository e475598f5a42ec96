"""What one measured step beside its prediction says: the row that docs/lab/accuracy_cases.md has of it.

A pair is what `dc-sim compare` says of one result of `dc-run`.
"""
import pathlib

from measured import ENDING

# Traced steps that take so many percent longer than timed ones tell nothing about their exposed communication.
TRACED = 3
# Percent by which a measured host makes the predicted step longer, from which on it is told, and counts as slow.
TOLD = 1
SLOW = 3
# A stream that merely waits delays each kernel of compute by so many ns at most, where streams count as quiet.
QUIET = 200


def error_of(pair, key):
    return 100 * (pair["predicted"][key] / pair["measured"][key] - 1)


def longer_traced(measured):
    """By how many percent the traced steps took longer than the timed ones, on the slowest rank; 0 where it is not known."""
    steps = [rank["traced_step_ns"] for rank in measured.get("ranks", []) if rank.get("traced_step_ns", 0) > 0]
    return 100 * (max(steps) / measured["step_time_ns"] - 1) if steps else 0


def exposed(pair):
    """Exposed communication, predicted less measured, in percent of the measured step (None where no step was traced, or
    the traced ones are known to be another step); whether that is within a tenth of it or a percent of the step. Gaps
    without any kernel count as the measurement counts them."""
    predicted, measured = pair["predicted"], pair["measured"]
    if measured["compute_ns"] == 0 or longer_traced(measured) > TRACED:
        return None, None
    step, of_step = measured["step_time_ns"], measured["exposed_communication_ns"]
    error = predicted["exposed_communication_ns"] + predicted["exposed_gaps_ns"] - predicted["exposed_starts_ns"] - of_step
    return 100 * error / step, abs(error) <= max(0.1 * of_step, 0.01 * step)


def clock_error(pair):
    """SM clock, predicted against that of the slowest GPU, in percent; None where it was not read."""
    clocks = [rank["sm_clock_mhz"] for rank in pair["measured"].get("ranks", []) if "sm_clock_mhz" in rank]
    predicted = pair["predicted"].get("sm_clock_mhz")
    return 100 * (predicted / min(clocks) - 1) if clocks and predicted else None


def case_of(pair):
    """Workload, cluster and plan of a result: traces/WORKLOAD/measured/CLUSTER.jsonl.xz:PLAN."""
    _, workload, _, pack = pair["file"].split("/")
    cluster, plan = pack.split(f"{ENDING}:")
    return workload, cluster, plan


def released(plan):
    """How memory comes back: event_ordered, record_stream, or offload of parameters or states, which follows copies."""
    offloads = plan.get("offload_parameters", False) or any(graph.get("state_moves") for graph in plan["graphs"])
    return "offload" if offloads else plan["release"]


def beyond_most(pair):
    """Percent by which a step reserved more than the prediction says that it may at most; 0 for none."""
    return max(0, 100 * (pair["measured"]["peak_reserved_bytes"] / pair["predicted"]["peak_reserved_most_bytes"] - 1))


def longer_with_host(pair):
    """By how many percent the predicted step is longer with the host of the measured one; 0 where nobody read it."""
    if "with_host" not in pair:
        return 0
    return 100 * (pair["with_host"]["predicted"]["step_time_ns"] / pair["predicted"]["step_time_ns"] - 1)


def with_host(pair):
    """How many times as long as priced the host took in the measured step, and the error of the prediction with such a
    host; None where that hardly changes the prediction."""
    if abs(longer_with_host(pair)) < TOLD:
        return None
    return pair["with_host"]["slowdown"], error_of(pair | pair["with_host"], "step_time_ns")


def quiet(measured):
    """Whether the step ran on streams whose waits delay no kernel, of which older results do not tell."""
    delays = [rank.get("waiting_ns") for rank in measured.get("ranks", [])]
    return bool(delays) and all(each is not None and max(each.values()) <= QUIET for each in delays)


def rivals_of(measured):
    """What steps of one workload share that ran in the same go and do the same work; None of a step alone."""
    words = measured["command"].split()
    if "--suite" not in words[-2:]:
        return None
    steps = measured["plan"]["gradient_accumulation_steps"]
    suite = pathlib.Path(words[-1]).name.replace(".yaml:", "-").removesuffix(".yaml")  # FILE:NAME, or older, a file of its own
    return suite + (f", accumulation {steps}" if steps > 1 else "")


def stopped(pair):
    """Whether the schedule did not complete, predicted or measured."""
    return any(pair[side]["outcome"] != "completed" for side in ("predicted", "measured"))


def stop_text(result):
    """What came of a schedule: "out of memory in clear-gradients"."""
    if result["outcome"] != "completed":
        task = result["stop"]["task"].removeprefix("rank 0, ").split(": CUDA out of memory")[0]
        return f"{result['outcome'].replace('_', ' ')} in {task}"
    return "completed"


def stop_row(pair):
    """Case, and what came of it: predicted and measured."""
    return (*case_of(pair), stop_text(pair["predicted"]), stop_text(pair["measured"]))


def row(pair):
    """Name, predicted and measured ms, error in percent, spread of the repeats, memory errors in percent."""
    predicted, measured = pair["predicted"], pair["measured"]
    times = sorted(measured["step_times_ns"])
    exposed_error, exposed_near = exposed(pair)
    workload, cluster, plan = case_of(pair)
    return {
        "workload": workload,
        "cluster": cluster,
        "plan": plan,
        "rivals": rivals_of(measured),
        "predicted": predicted["step_time_ns"] / 1e6,
        "measured": measured["step_time_ns"] / 1e6,
        "error": error_of(pair, "step_time_ns"),
        "inside": predicted["bound_ns"] is not None
        and abs(predicted["step_time_ns"] - measured["step_time_ns"]) <= predicted["bound_ns"],
        "spread": 100 * (times[-1] - times[0]) / measured["step_time_ns"],
        "allocated": error_of(pair, "peak_allocated_bytes"),
        "reserved": error_of(pair, "peak_reserved_bytes"),
        "exposed": exposed_error,
        "exposed_near": exposed_near,
        "clock": clock_error(pair),
        "host": with_host(pair),
        "slow": longer_with_host(pair) >= SLOW,
        "beyond_most": beyond_most(pair),
        "quiet": quiet(measured),
        "ordered": measured["plan"]["release"] == "event_ordered",
        "released": released(measured["plan"]),
        # A profile tells what kernels need beside their results.
        "profiled": predicted["sources"]["measured"] > 0.5,
        "same": all(predicted[key] == measured[key] for key in ("peak_allocated_bytes", "peak_reserved_bytes")),
    }
