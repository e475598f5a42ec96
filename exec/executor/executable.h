#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim::exec {

/// Which option of a plan the executor has no kernels for, with what it does have; "" when it runs
/// the plan.
std::string FindUnexecutable(const ScheduleOptions& options);

/// The first kernel of a compiled graph of which the recording does not say what it computes, by
/// which CPU ranks run it, in a sentence; "" where there is none.
std::string FindUnexecutable(const Graph& graph);

}  // namespace dcsim::exec
