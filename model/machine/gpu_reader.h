#pragma once

#include "model/machine/gpu.h"

namespace dcsim {

/// Reads a dc-gpu/1 object, its `kernels` by `read_kernels`. Faults go to `faults`.
GpuSpec ReadGpu(const Json& value,
                const Path& path,
                Faults& faults,
                KernelRatesReader read_kernels);

}  // namespace dcsim
