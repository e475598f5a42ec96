#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dcsim {

/// Kernels that torch's foreach and fused operators launch over tensors of these sizes.
///
///   sizes   elements of each tensor
///   lists   tensors of the operator for each of them, 1 to 5: two for a copy, four for Adam
///
/// Source: PyTorch 2.11, aten/src/ATen/native/cuda/MultiTensorApply.cuh.
std::size_t MultiTensorLaunches(std::span<const std::int64_t> sizes, std::size_t lists);

}  // namespace dcsim
