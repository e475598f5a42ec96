#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/ir/result.h"
#include "sim/analysis/exposure.h"
#include "sim/analysis/peak_holders.h"
#include "sim/analysis/shifted_params.h"
#include "sim/analysis/stalls.h"
#include "sim/analysis/tied_gathers.h"

namespace dcsim {

/// Time on the critical path by what it is spent on.
struct CriticalShare {
  std::string what;  // "aten::mm", "all-gather", "host", "waiting to start"
  Duration time;
  std::size_t pieces = 0;
};

/// A step time with one thing changed.
struct ChangedTime {
  std::string change;
  Duration step_time;
};

/// What keeping more parameters gathered, or fewer, would do.
struct MemoryValue {
  std::size_t params = 0;
  Bytes reserved;  // of the changed plan
  Duration step_time;
};

/// How a plan and its rivals fare when the tables are wrong.
struct ChoiceRow {
  std::string change;
  std::vector<Duration> step_times;  // the plan's first
};

/// What tied embeddings make of list scheduling, and what gathers at use would do instead.
struct TiedValue {
  TiedGathers gathers;
  Bytes reserved;  // at use
  Duration step_time;
};

/// What parameters of odd size shift, and what `align_tensors` would make of the plan.
struct ShiftedValue {
  ShiftedParams params;
  Bytes reserved;  // aligned
  Duration step_time;
};

/// Everything that `dc-sim explain` says about one plan.
struct Explanation {
  Result result;
  Duration compute_alone;  // kernels of the compute stream, nothing beside them
  std::vector<CollectiveExposure> exposures;
  std::vector<ComputeStall> stalls;
  std::vector<CriticalShare> critical;
  std::vector<ChangedTime> removed;
  std::vector<ChangedTime> errors;
  std::optional<MemoryValue> more_memory;
  std::optional<MemoryValue> less_memory;
  std::optional<TiedValue> tied;
  std::optional<ShiftedValue> shifted;
  std::vector<std::string> rivals;
  std::vector<ChoiceRow> choice;
  LivePeak peak;
};

/// Who is alive in `peak`, by class and origin, most bytes first.
///
///   when   "at the peak"
std::string PrintHolders(const LivePeak& peak,
                         const std::string& when,
                         const Schedule& schedule,
                         const Graph& graph);

/// What a person reads; the holders of the peak only when `memory` is set.
///
///   step time                   553 ms
///     kernels alone             517 ms   93.5 % of the step, nothing beside them
///     slowed beside others     28.1 ms    5.1 %, with kernels alone: simulate's compute
///     ...
std::string PrintExplanation(const Explanation& explanation,
                             const Schedule& schedule,
                             const Graph& graph,
                             bool memory);

/// dc-explanation/1 (docs/reference/formats.md) of a plan whose step stops: the result, and who was
/// alive.
Json PrintStoppedJson(const Result& result,
                      const LivePeak& at_stop,
                      const Schedule& schedule,
                      const Graph& graph);

/// dc-explanation/1 (docs/reference/formats.md).
Json PrintExplanationJson(const Explanation& explanation,
                          const Schedule& schedule,
                          const Graph& graph);

}  // namespace dcsim
