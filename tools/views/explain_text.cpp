#include "tools/views/explain_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "model/base/text.h"
#include "model/ir/task_label.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

constexpr std::size_t kShown = 12;

std::string OfStep(Duration part, const Explanation& explanation) {
  const auto step =
      static_cast<double>(std::max<std::int64_t>(1, explanation.result.step_time.ns()));
  return Percent(static_cast<double>(part.ns()) / step);
}

std::string SignedDuration(Duration from, Duration to) {
  const Duration difference = to - from;
  return difference < Duration() ? "-" + FormatDuration(Duration() - difference)
                                 : "+" + FormatDuration(difference);
}

std::string StepSection(const Explanation& each) {
  const Result& result = each.result;
  const Duration slowed = result.compute - each.compute_alone;
  const Duration idle = result.step_time - result.compute - result.exposed_communication;
  return TableLine("step time", FormatDuration(result.step_time), "") +
         TableLine("  kernels alone", FormatDuration(each.compute_alone),
                   OfStep(each.compute_alone, each) + " of the step, nothing beside them") +
         TableLine("  slowed beside others", FormatDuration(slowed),
                   OfStep(slowed, each) + ", with kernels alone: simulate's compute") +
         TableLine("  exposed communication", FormatDuration(result.exposed_communication),
                   OfStep(result.exposed_communication, each)) +
         TableLine("  idle otherwise", FormatDuration(idle), OfStep(idle, each));
}

std::string StallName(const ComputeStall& stall) {
  switch (stall.reason) {
    case StallReason::kNone:
      return "behind the last kernel";
    case StallReason::kHost:
      return "the host had issued nothing yet";
    case StallReason::kEvent:
      return "waiting for " + std::string(TaskKindName(stall.blocker));
    case StallReason::kCommunicator:
      return "the communicator was busy";
  }
  return "";
}

std::string StallSection(const Explanation& each) {
  std::string text = "\nwhy the compute stream stood still\n";
  for (const ComputeStall& stall : each.stalls) {
    text += "  " + FlushRight(FormatDuration(stall.time), 8) +
            FlushRight(OfStep(stall.time, each), 8) + "  " + StallName(stall) + ", " +
            std::to_string(stall.stalls) + (stall.stalls == 1 ? " time\n" : " times\n");
  }
  return text;
}

std::string ExposureSection(const Explanation& each, const Schedule& schedule, const Graph& graph) {
  auto exposures = each.exposures;
  std::stable_sort(exposures.begin(), exposures.end(),
                   [](const CollectiveExposure& a, const CollectiveExposure& b) {
                     return a.exposed > b.exposed;
                   });
  std::string text = "\nexposed communication by collective\n   exposed   of busy  collective\n";
  for (std::size_t i = 0; i < std::min(kShown, exposures.size()); ++i) {
    const CollectiveExposure& exposure = exposures[i];
    if (exposure.exposed == Duration()) {
      break;
    }
    text += "  " + FlushRight(FormatDuration(exposure.exposed), 8) +
            FlushRight(FormatDuration(exposure.busy), 10) + "  " +
            TaskLabel(schedule, graph, exposure.task);
    text += exposure.hidden_by.is_none()
                ? "\n"
                : ", beside " + TaskLabel(schedule, graph, exposure.hidden_by) + "\n";
  }
  return text;
}

std::string CriticalSection(const Explanation& each) {
  std::string text = "\ncritical path\n";
  for (std::size_t i = 0; i < std::min(kShown, each.critical.size()); ++i) {
    const CriticalShare& share = each.critical[i];
    text += "  " + FlushRight(FormatDuration(share.time), 8) +
            FlushRight(OfStep(share.time, each), 8) + "  " + share.what + ", " +
            std::to_string(share.pieces) + (share.pieces == 1 ? " piece\n" : " pieces\n");
  }
  return text;
}

std::string ChangeLines(const std::vector<ChangedTime>& changes, const Explanation& each) {
  std::string text;
  for (const ChangedTime& change : changes) {
    text += "  " + FlushLeft(change.change, 40) + FlushRight(FormatDuration(change.step_time), 8) +
            FlushRight(SignedDuration(each.result.step_time, change.step_time), 10) + "\n";
  }
  return text;
}

std::string MemoryLine(const std::string& what, const MemoryValue& value, const Explanation& each) {
  const Bytes more = value.reserved - each.result.peak_reserved;
  const std::string change =
      more < Bytes(0) ? "-" + FormatBytes(Bytes(0) - more) : "+" + FormatBytes(more);
  return "  " +
         FlushLeft(what + " (" +
                       Counted(static_cast<std::int64_t>(value.params), "parameter", "parameters") +
                       ", " + change + ")",
                   40) +
         FlushRight(FormatDuration(value.step_time), 8) +
         FlushRight(SignedDuration(each.result.step_time, value.step_time), 10) + "\n";
}

std::string ValueSection(const Explanation& each) {
  std::string text = "\nstep time if\n" + ChangeLines(each.removed, each);
  if (each.more_memory) {
    text += MemoryLine("1 GiB more kept", *each.more_memory, each);
  }
  if (each.less_memory) {
    text += MemoryLine("1 GiB less kept", *each.less_memory, each);
  }
  return text + "\nstep time if the tables are wrong\n" + ChangeLines(each.errors, each);
}

/// ", +12 MiB reserved" of a changed plan.
std::string ReservedChange(const Explanation& each, Bytes reserved) {
  const Bytes more = reserved - each.result.peak_reserved;
  return (more < Bytes(0) ? "-" + FormatBytes(Bytes(0) - more) : "+" + FormatBytes(more)) +
         " reserved";
}

std::string TimeLine(const Explanation& each, const std::string& change, Duration step_time) {
  return "  " + FlushLeft(change, 40) + FlushRight(FormatDuration(step_time), 8) +
         FlushRight(SignedDuration(each.result.step_time, step_time), 10) + "\n";
}

std::string ShiftedSection(const Explanation& each, const Graph& graph) {
  if (!each.shifted) {
    return "";
  }
  const ShiftedParams& found = each.shifted->params;
  const std::string shift =
      found.odd == 1 ? "shifts "
                     : "and " + std::to_string(found.odd - 1) + " more of odd size shift ";
  return "\ntensors at no multiple of 16 bytes\n  " + graph.param(found.first).name + " (" +
         std::to_string(graph.numel(found.first)) + " elements)\n  " + shift +
         std::to_string(found.shifted) + " of " + std::to_string(graph.params.size()) +
         " parameters in the flat weights, and gradients in buckets.\n  Products, convolutions, "
         "norms and collectives are slower on such tensors.\n" +
         TimeLine(each, "align_tensors (" + ReservedChange(each, each.shifted->reserved) + ")",
                  each.shifted->step_time);
}

std::string TiedSection(const Explanation& each, const Graph& graph) {
  if (!each.tied) {
    return "";
  }
  const TiedGathers& found = each.tied->gathers;
  const Param& param = graph.param(found.param);
  return "\ntied embeddings\n  " + param.name + " is " + param.tied.front() + " too: graph " +
         std::to_string(found.graph) +
         " needs it first and last.\n  Nothing else is released before it is gathered, and its own "
         "release needs all others:\n  both list schedulers of DeepCompile gather " +
         std::to_string(found.ahead) + " of " + std::to_string(found.gathers) + " parameters, " +
         FormatBytes(found.bytes) + ", before they release one.\n" +
         TimeLine(each,
                  "gathers at use (plain-1, " + ReservedChange(each, each.tied->reserved) + ")",
                  each.tied->step_time);
}

std::string ChoiceSection(const Explanation& each) {
  if (each.rivals.empty()) {
    return "";
  }
  std::string text = "\nbeside its rivals\n  " + FlushLeft("", 32) + FlushRight("this plan", 12);
  for (const std::string& rival : each.rivals) {
    text += "  " + FlushRight(rival, 10);
  }
  text += "\n";
  for (const ChoiceRow& row : each.choice) {
    const auto best = std::min_element(row.step_times.begin(), row.step_times.end());
    text +=
        "  " + FlushLeft(row.change, 32) + FlushRight(FormatDuration(row.step_times.front()), 12);
    for (std::size_t i = 1; i < row.step_times.size(); ++i) {
      text += "  " + FlushRight(FormatDuration(row.step_times[i]),
                                std::max<std::size_t>(10, each.rivals[i - 1].size()));
    }
    text += best == row.step_times.begin() ? "  stays best\n" : "  is beaten\n";
  }
  return text;
}

Json ChangesJson(const std::vector<ChangedTime>& changes) {
  Json list = Json::array();
  for (const ChangedTime& change : changes) {
    list.push_back({{"change", change.change}, {"step_time_ns", change.step_time.ns()}});
  }
  return list;
}

Json ValueJson(const std::optional<MemoryValue>& value) {
  if (!value) {
    return nullptr;
  }
  return {{"params", value->params},
          {"peak_reserved_bytes", value->reserved.count()},
          {"step_time_ns", value->step_time.ns()}};
}

Json TiedJson(const std::optional<TiedValue>& tied, const Graph& graph) {
  if (!tied) {
    return nullptr;
  }
  return {{"param", graph.param(tied->gathers.param).name},
          {"graph", tied->gathers.graph},
          {"ahead", tied->gathers.ahead},
          {"gathers", tied->gathers.gathers},
          {"bytes", tied->gathers.bytes.count()},
          {"at_use_step_time_ns", tied->step_time.ns()},
          {"at_use_peak_reserved_bytes", tied->reserved.count()}};
}

Json ShiftedJson(const std::optional<ShiftedValue>& shifted, const Graph& graph) {
  if (!shifted) {
    return nullptr;
  }
  return {{"first", graph.param(shifted->params.first).name},
          {"odd", shifted->params.odd},
          {"shifted", shifted->params.shifted},
          {"aligned_step_time_ns", shifted->step_time.ns()},
          {"aligned_peak_reserved_bytes", shifted->reserved.count()}};
}

Json HoldersJson(const std::vector<HolderGroup>& groups) {
  Json holders = Json::array();
  for (const HolderGroup& group : groups) {
    holders.push_back({{"class", BufferClassName(group.buffer_class)},
                       {"origin", group.origin},
                       {"bytes", group.bytes.count()},
                       {"buffers", group.buffers}});
  }
  return holders;
}

}  // namespace

std::string PrintHolders(const LivePeak& peak,
                         const std::string& when,
                         const Schedule& schedule,
                         const Graph& graph) {
  const std::vector<HolderGroup> holders = GroupHolders(peak, schedule, graph);
  std::string text = "\nalive " + when + ", " + FormatBytes(peak.bytes) + " as requested";
  text += peak.task.is_none() ? "\n" : ", in " + TaskLabel(schedule, graph, peak.task) + "\n";
  constexpr std::size_t kMostHolders = 20;
  Bytes rest;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const HolderGroup& group = holders[i];
    if (i >= kMostHolders) {
      rest += group.bytes;
      continue;
    }
    text += "  " + FlushRight(FormatBytes(group.bytes), 8) + "  " +
            FlushLeft(std::string(BufferClassName(group.buffer_class)), 20) +
            FlushRight(std::to_string(group.buffers), 5) +
            (group.origin.empty() ? "" : "  " + group.origin) + "\n";
  }
  return rest == Bytes(0) ? text : text + "  " + FlushRight(FormatBytes(rest), 8) + "  others\n";
}

Json PrintStoppedJson(const Result& result,
                      const LivePeak& at_stop,
                      const Schedule& schedule,
                      const Graph& graph) {
  return {{"format", "dc-explanation/1"},
          {"result", PrintResult(result)},
          {"peak_live_bytes", at_stop.bytes.count()},
          {"holders", HoldersJson(GroupHolders(at_stop, schedule, graph))}};
}

std::string PrintExplanation(const Explanation& explanation,
                             const Schedule& schedule,
                             const Graph& graph,
                             bool memory) {
  return StepSection(explanation) + StallSection(explanation) +
         ExposureSection(explanation, schedule, graph) + CriticalSection(explanation) +
         ValueSection(explanation) + TiedSection(explanation, graph) +
         ShiftedSection(explanation, graph) + ChoiceSection(explanation) +
         (memory ? PrintHolders(explanation.peak, "at the peak", schedule, graph) : "");
}

Json PrintExplanationJson(const Explanation& each, const Schedule& schedule, const Graph& graph) {
  Json exposures = Json::array();
  for (const CollectiveExposure& exposure : each.exposures) {
    const Json beside = exposure.hidden_by.is_none()
                            ? Json(nullptr)
                            : Json(TaskLabel(schedule, graph, exposure.hidden_by));
    exposures.push_back({{"task", exposure.task.index()},
                         {"label", TaskLabel(schedule, graph, exposure.task)},
                         {"start_ns", exposure.start.ns()},
                         {"busy_ns", exposure.busy.ns()},
                         {"exposed_ns", exposure.exposed.ns()},
                         {"hidden_by", beside}});
  }
  Json stalls = Json::array();
  for (const ComputeStall& stall : each.stalls) {
    stalls.push_back(
        {{"cause", StallName(stall)}, {"time_ns", stall.time.ns()}, {"stalls", stall.stalls}});
  }
  Json critical = Json::array();
  for (const CriticalShare& share : each.critical) {
    critical.push_back(
        {{"what", share.what}, {"time_ns", share.time.ns()}, {"pieces", share.pieces}});
  }
  return {{"format", "dc-explanation/1"},
          {"result", PrintResult(each.result)},
          {"compute_alone_ns", each.compute_alone.ns()},
          {"collectives", exposures},
          {"compute_stalls", stalls},
          {"critical_path", critical},
          {"removed", ChangesJson(each.removed)},
          {"table_errors", ChangesJson(each.errors)},
          {"more_memory", ValueJson(each.more_memory)},
          {"less_memory", ValueJson(each.less_memory)},
          {"tied", TiedJson(each.tied, graph)},
          {"shifted", ShiftedJson(each.shifted, graph)},
          {"peak_live_bytes", each.peak.bytes.count()},
          {"holders", HoldersJson(GroupHolders(each.peak, schedule, graph))}};
}

}  // namespace dcsim
