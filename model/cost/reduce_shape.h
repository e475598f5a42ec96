#pragma once

#include <cstdint>
#include <optional>

#include "model/cost/kernel_traits.h"

namespace dcsim {

/// How PyTorch's reduction kernel spreads a sum, mean or the like over a GPU.
struct ReduceShape {
  std::int64_t outputs = 0;
  std::int64_t values = 0;   // of each
  std::int64_t threads = 0;  // of a thread block
  std::int64_t blocks = 0;   // thread blocks
  std::int64_t parts = 1;    // thread blocks that share an output
  std::int64_t values_per_thread = 0;
  Bytes apart;  // from what a thread reads to what its neighbour does
};

/// Nothing for an op that is no reduction, or whose reduced dimensions cannot be told.
///
///   multiprocessors   of the GPU, of 2,048 threads each
///
/// Source: PyTorch 2.11 aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig; thread blocks and
/// threads are those of 57 of the 60 reductions in the committed profiles.
std::optional<ReduceShape> FindReduceShape(const KernelTraits& of, int multiprocessors);

}  // namespace dcsim
