#pragma once

#include <ATen/cuda/CUDAEvent.h>

#include "model/base/units.h"

namespace dcsim::exec {

/// What passed on the GPU between two events that keep times and have happened, to the ns that
/// cudaEventElapsedTime's float of ms gives.
Duration TimeBetween(const at::cuda::CUDAEvent& from, const at::cuda::CUDAEvent& to);

}  // namespace dcsim::exec
