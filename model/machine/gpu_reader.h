#pragma once

#include "model/machine/gpu.h"

namespace dcsim {

/// Reads a dc-gpu/1 object, its `kernels` and `triton` by `read`. Faults go to `faults`.
GpuSpec ReadGpu(const Json& value, const Path& path, Faults& faults, const KernelRatesReader& read);

}  // namespace dcsim
