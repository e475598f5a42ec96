#pragma once

#include <optional>
#include <vector>

#include "exec/profiler/kernel_records.h"

namespace dcsim::exec {

/// Labels for steps that were recorded without: labels need the records of every call of CUDA's
/// runtime and driver, which cost the host so much that a recorded step is up to a fifth longer
/// than others. A schedule issues the same kernels in the same order on each stream, step after
/// step, so one labelled step tells the tasks of all.
///
///   labelled  records of one step, whole
///   bare      records of `steps` steps, whole, of the same schedule and process
///
/// Returns the records of each step in order, by start, labelled; nothing when on some stream the
/// kernels' names are not those of the labelled step, `steps` times.
std::optional<std::vector<std::vector<KernelRecord>>> LabelByOrder(
    const std::vector<KernelRecord>& labelled, const std::vector<KernelRecord>& bare, int steps);

}  // namespace dcsim::exec
