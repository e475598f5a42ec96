#pragma once

#include <vector>

#include "model/ir/schedule.h"

namespace dcsim::exec {

/// One kind of memory work, on tensors far larger than the caches.
struct MemorySample {
  MemoryPattern pattern = MemoryPattern::kCopy;
  BytesPerSecond bandwidth;  // bytes read and written, over kernel time
};

/// Rates of the kernels that schedules use besides recorded ops, on the current GPU.
std::vector<MemorySample> BenchmarkMemory();

}  // namespace dcsim::exec
