#pragma once

#include "model/ir/plan.h"

namespace dcsim::exec {

/// Makes PyTorch's allocator of GPU memory take segments as a plan says, whatever
/// PYTORCH_CUDA_ALLOC_CONF says of that; its other settings stay. In force for what is taken from
/// the driver from then on, in this process.
void ChooseAllocator(AllocatorMode mode);

}  // namespace dcsim::exec
