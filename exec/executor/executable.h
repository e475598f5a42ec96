#pragma once

#include <string>

#include "model/ir/plan.h"

namespace dcsim::exec {

/// Which option of a plan the executor has no kernels for, with what it does have; "" when it runs
/// the plan.
std::string FindUnexecutable(const ScheduleOptions& options);

}  // namespace dcsim::exec
