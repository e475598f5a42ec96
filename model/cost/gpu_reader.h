#pragma once

#include "model/cost/cluster.h"

namespace dcsim {

/// Reads a dc-gpu/1 object. Faults go to `faults`.
GpuSpec ReadGpu(const Json& value, const Path& path, Faults& faults);

}  // namespace dcsim
