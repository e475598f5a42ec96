#pragma once

#include <cstdint>
#include <span>

#include "model/ir/document.h"
#include "model/ir/graph.h"

namespace dcsim {

constexpr std::int64_t kMostElements = std::int64_t{1} << 48;  // 281e12, so that byte counts fit

/// Whether a tensor of this shape, extents from 0 on, can be counted: at most `kMostElements`, an
/// empty dimension taken for one of a single element, so that contiguous strides fit as well.
bool IsCountable(std::span<const std::int64_t> shape);

/// Adds a fault for every broken rule of docs/reference/formats.md, dc-graph/1: order of production
/// and use, views inside their storages, aliases, the link between forward and backward, the loss,
/// gradients, and arguments against schemas. Ids must be in range already.
void CheckGraph(const Graph& graph, Faults& faults);

}  // namespace dcsim
