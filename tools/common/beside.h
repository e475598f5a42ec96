#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/ir/graph.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"
#include "sim/analysis/kernel_spans.h"
#include "tools/common/kineto_trace.h"
#include "tools/common/work_class.h"

namespace dcsim {

/// Time of the GPU's work, over all streams, and how many kernels, copies and fills it is.
struct WorkAmount {
  Duration time;
  double launches = 0;  // a mean over the trace's steps may be no whole number
};

/// Kernels that are one in the comparison: those of a Triton kernel by its name, of attention by
/// direction, and so on (GroupOfEvent).
struct BesideTask {
  WorkClass work_class = WorkClass::kOther;
  std::string kernel;  // of the trace; empty: nothing in it is this task
  std::string task;    // of the prediction; the same
  WorkAmount measured;
  WorkAmount predicted;
};

struct MeasuredAndPredicted {
  Duration measured;
  Duration predicted;
};

/// A traced step, the mean of a trace's steps, beside a predicted one.
struct Beside {
  std::string file;
  std::vector<std::int64_t> steps;  // numbers of those that are in the mean; none: no markers
  MeasuredAndPredicted step;
  MeasuredAndPredicted exposed;  // a collective runs, and nothing else
  MeasuredAndPredicted idle;     // nothing runs
  std::array<WorkAmount, kWorkClasses> measured;
  std::array<WorkAmount, kWorkClasses> predicted;
  std::vector<BesideTask> tasks;  // all but matrix products; the longest first
};

/// A predicted step, task by task.
struct PredictedTasks {
  const Schedule& schedule;
  const Graph& graph;
  std::span<const KernelSpan> kernels;  // of this schedule (FindKernelSpans)
  std::span<const WorkCost> costs;      // the same
  const Result& result;                 // the same; it completed
};

/// Kernels alone count, on both sides: of a predicted task, its time without what passes before and
/// between its kernels.
///
/// Tasks are paired by name where both have one. The others, of one class and both on the stream
/// with most work or both beside it, are paired where a number of launches is found as often on
/// both sides, in the order of their first starts; neither those launched once nor operators of
/// the graph. A product's kernel does not tell its shape, so products are no tasks here.
Beside CompareBeside(const KinetoTrace& trace, const PredictedTasks& predicted);

}  // namespace dcsim
