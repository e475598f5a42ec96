#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace dcsim::exec {

/// Float32 elements on a GPU in memory of the driver's, which goes with the last tensor of it.
/// PyTorch's allocator, whose bytes are the schedule's, knows nothing of it. Not initialised.
/// Throws SystemError where there is none left.
at::Tensor DriverFloats(std::int64_t count, c10::Device device);

}  // namespace dcsim::exec
