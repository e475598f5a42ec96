#pragma once

#include "model/cost/kernel_traits.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// Time of the pass of a convolution with kernels of one element that reads its weight (of a
/// backward the input's gradient) where that begins at no multiple of 16 bytes: thread blocks of
/// cuDNN's older kernels, as profiles name them. Seconds, a bias included; the GPU's file has
/// `kernels`. Source: configs/measured/h200-unaligned-weights.jsonl, H100 profiles
/// (docs/design/costs/products.md).
double UnalignedWeightSeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
