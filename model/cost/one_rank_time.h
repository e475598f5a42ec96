#pragma once

#include <optional>

#include "model/cost/collective_traits.h"

namespace dcsim {

struct GpuSpec;

/// One rank copies on its own GPU, and has nothing to do in an all-reduce, which is in place. None
/// of more ranks.
std::optional<CollectivePrice> OneRankPrice(const CollectiveTraits& of, const Cluster& cluster);

/// A copy within the GPU's memory, at the bandwidth that streaming kernels reach.
Duration CopyTime(const GpuSpec& gpu, Bytes bytes);

}  // namespace dcsim
