#pragma once

#include <span>
#include <vector>

#include "model/cost/work_cost.h"
#include "model/ir/schedule.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// When the kernels of a task run: a task begins when its stream lets it, its first kernel when it
/// has arrived and finds multiprocessors.
struct KernelSpan {
  TaskId task;
  std::uint8_t stream = 0;
  SimTime start;  // of the first kernel, since the end of the step before
  SimTime end;
  Duration gaps;  // of that, time between its kernels, in which none of them runs
};

/// Those of the first step behind the warm-up, in the order of their ends. Tasks without a length
/// are left out. Empty where that step does not complete.
std::vector<KernelSpan> FindKernelSpans(const Schedule& schedule,
                                        std::span<const WorkCost> costs,
                                        const SimulationOptions& options);

}  // namespace dcsim
