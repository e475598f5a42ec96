#include "tools/views/result_text.h"

#include <algorithm>

#include "model/base/text.h"
#include "model/cost/power.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

std::string StepLines(const Result& result, const Cluster& cluster) {
  const auto step = static_cast<double>(std::max<std::int64_t>(1, result.step_time.ns()));
  const auto line = [step](const std::string& label, Duration part) {
    const std::string share = Percent(static_cast<double>(part.ns()) / step) + " of the step";
    return TableLine(label, FormatDuration(part), share);
  };
  const std::string bound =
      result.bound ? "+/- " + FormatDuration(*result.bound) + " (90 %), " : std::string();
  std::string lines =
      TableLine("step time", FormatDuration(result.step_time),
                bound + Thousands(result.tokens_per_second / result.gpus) + " tokens/s/GPU, " +
                    Percent(result.model_flops_utilisation) + " MFU") +
      line("  forward", result.forward) + line("  backward", result.backward) +
      line("  optimizer", result.optimizer) +
      line("exposed communication", result.exposed_communication) + line("compute", result.compute);
  if (cluster.gpu.power && result.sm_clock_mhz > 0) {
    const double highest = cluster.gpu.power->highest_mhz;
    const std::string limit = Thousands(PowerLimit(cluster)) + " W";
    lines += TableLine("SM clock", Thousands(result.sm_clock_mhz) + " MHz",
                       result.sm_clock_mhz < highest
                           ? "of " + Thousands(highest) + ": " + limit + " allow no more"
                           : "the highest, within " + limit);
  }
  if (!result.no_bound.empty()) {
    lines += TableLine("  error", "unknown", result.no_bound);
  }
  return lines;
}

/// The largest classes, at most five, and the rest.
std::string ClassesNote(std::vector<ClassBytes> classes) {
  std::stable_sort(classes.begin(), classes.end(),
                   [](const ClassBytes& a, const ClassBytes& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kShown = 5;
  std::string note;
  Bytes rest;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (i >= kShown) {
      rest += classes[i].bytes;
      continue;
    }
    note += (i == 0 ? "" : ", ") + std::string(BufferClassName(classes[i].buffer_class)) + " " +
            FormatBytes(classes[i].bytes);
  }
  return rest > Bytes(0) ? note + ", others " + FormatBytes(rest) : note;
}

/// Of a step whose memory comes back when the host finds that the GPU has passed.
std::string OtherHosts(const Result& result) {
  const bool follows_time = result.plan.value("release", "") == "record_stream";
  return follows_time ? ", or a host that is faster or slower" : "";
}

std::string MemoryLines(const Result& result, const GpuSpec& gpu) {
  std::string lines =
      TableLine("peak memory, reserved", FormatBytes(result.peak_reserved),
                "of " + FormatBytes(result.capacity) + " that " + gpu.name + " leaves to tensors") +
      (result.peak_reserved_most > result.peak_reserved
           ? TableLine("  at most", FormatBytes(result.peak_reserved_most),
                       "with segments in another order" + OtherHosts(result))
           : "") +
      TableLine("  allocated", FormatBytes(result.peak_allocated), "") +
      TableLine("  live", FormatBytes(result.peak_live), ClassesNote(result.peak_classes)) +
      TableLine("after the step", FormatBytes(result.allocated_after_step), "allocated") +
      TableLine("on the GPU", FormatBytes(result.peak_reserved + result.outside_allocator),
                "with " + FormatBytes(result.outside_allocator) + " of context, modules, NCCL");
  if (result.host_pinned > Bytes(0)) {
    lines += TableLine("pinned host memory", FormatBytes(result.host_pinned), "of each GPU");
  }
  if (result.allocator_retries > 0) {
    lines += TableLine("allocator retries", std::to_string(result.allocator_retries),
                       "the cache was flushed to make room");
  }
  return lines;
}

/// What there was when a request failed. Nothing of a step that cannot begin: how far the
/// allocation of what it needs came does not matter.
std::string MemoryAtStop(const Result& result, const GpuSpec& gpu) {
  const StopReport& stop = *result.stop;
  const std::string outside = TableLine(
      "outside the allocator", FormatBytes(result.outside_allocator), "context, modules, NCCL");
  if (!stop.needed.empty()) {
    return TableLine("before the first step", FormatBytes(SumOf(stop.needed)),
                     ClassesNote(stop.needed)) +
           TableLine("there is", FormatBytes(result.capacity),
                     "that " + gpu.name + " leaves to tensors") +
           outside;
  }
  const std::string op = stop.op.empty() || stop.task.starts_with(stop.op) ? "" : ", " + stop.op;
  std::string lines =
      TableLine("asked for", FormatBytes(stop.requested),
                stop.requested_class + ", by " + stop.task + op +
                    (stop.step == 0 ? ", in the first step" : "")) +
      TableLine("reserved then", FormatBytes(result.peak_reserved),
                "of " + FormatBytes(result.capacity) + " that " + gpu.name + " leaves to tensors") +
      TableLine("  allocated", FormatBytes(result.peak_allocated), "") +
      TableLine("  live", FormatBytes(result.peak_live), ClassesNote(result.peak_classes)) +
      outside;
  if (result.allocator_retries > 0) {
    lines += TableLine("allocator retries", std::to_string(result.allocator_retries),
                       "the cache was flushed to make room");
  }
  return lines;
}

std::string CollectiveLines(const Result& result) {
  std::string lines;
  for (const CollectiveTotals& totals : result.collectives) {
    std::string launches;
    if (totals.launches != totals.calls) {
      launches = " in " + Counted(totals.launches, "launch", "launches");
    }
    lines += TableLine(
        "  " + std::string(CollectiveKindName(totals.kind)), FormatDuration(totals.busy),
        Counted(totals.calls, "call", "calls") + launches + ", " + FormatBytes(totals.payload) +
            " payload, " + FormatBytes(totals.wire) + " sent by each GPU");
  }
  return lines.empty() ? "" : "collectives, busy time\n" + lines;
}

std::string SourceLine(const SourceShares& sources) {
  return TableLine("device time by source", Percent(sources.measured),
                   "measured, " + Percent(sources.interpolated) + " interpolated, " +
                       Percent(sources.estimated) + " estimated");
}

/// The first line: whether the job runs.
std::string VerdictLine(const Result& result, const Cluster& cluster) {
  const std::string reserved = PartOf(result.peak_reserved, result.capacity) + " reserved";
  if (result.outcome == "out_of_memory" && !result.stop->needed.empty()) {
    return "does not fit: needs " + FormatBytes(SumOf(result.stop->needed)) +
           " of weights and states before the first step, there are " +
           FormatBytes(result.capacity) + "\n";
  }
  if (result.outcome == "out_of_memory") {
    return "does not fit: " + result.stop->task + " asks for " +
           FormatBytes(result.stop->requested) + " more, " + reserved + "\n";
  }
  if (result.outcome == "out_of_pinned_memory") {
    const Bytes limit = cluster.pinned_memory.value_or(Bytes(0));
    return "does not fit: " + result.stop->task + " needs " + FormatBytes(result.stop->requested) +
           " of pinned host memory, of " + FormatBytes(limit) + " that the " +
           std::to_string(cluster.gpus_per_node) + " GPUs of a machine share\n";
  }
  if (result.outcome == "deadlock") {
    return "deadlock: " + result.stop->task + " can never start\n";
  }
  return result.peak_reserved_most > result.capacity
             ? "may run out of memory: " + reserved + ", at most " +
                   FormatBytes(result.peak_reserved_most) + "\n"
             : "fits: " + reserved + "\n";
}

}  // namespace

std::string BackendOf(const Result& result) {
  return result.plan.is_object() ? result.plan.value("backend", "aten") : "aten";
}

std::string TitleOf(const Result& result, const Cluster& cluster) {
  const int stage = result.plan.value("stage", 0);
  return result.workload + ", ZeRO-" + std::to_string(stage) + " (" +
         result.plan.value("policy", "") + ", " + BackendOf(result) + "), " +
         std::to_string(result.gpus) + " x " + cluster.gpu.name;
}

std::string PrintResultText(const Result& result, const Cluster& cluster) {
  std::string title = VerdictLine(result, cluster) + TitleOf(result, cluster) + "\n\n";
  if (result.outcome == "out_of_memory") {
    return title + MemoryAtStop(result, cluster.gpu);
  }
  if (result.outcome != "completed") {
    return title;
  }
  return title + StepLines(result, cluster) + MemoryLines(result, cluster.gpu) +
         CollectiveLines(result) + SourceLine(result.sources);
}

}  // namespace dcsim
