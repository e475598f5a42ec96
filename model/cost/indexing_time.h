#pragma once

#include <optional>

#include "model/cost/cluster.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Time of what indices name on a GPU whose file has `kernels`, seconds; nothing for other ops.
///
///   embedding             bytes, or rows
///   its backward          filling the table, sorting indices (or none) and adding rows
///   index                 bytes, or rows; elements one by one where indices name no row
///   index_put             copying its tensor; where it adds: sorting indices, then rows, or
///                         elements and what they are added to, one by one
///   gather, scatter       elements; a scatter copies its tensor first
///
/// Source: docs/design/costs/elementwise.md; aten/src/ATen/native/cuda/Indexing.cu.
std::optional<double> FindIndexingSeconds(const Graph& graph, OpId id, const GpuSpec& gpu);

}  // namespace dcsim
