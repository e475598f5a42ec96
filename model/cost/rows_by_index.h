#pragma once

#include "model/ir/graph.h"

namespace dcsim {

/// Whether an index_put adds what it puts, for which its indices are sorted.
bool AddsByIndex(const Graph& graph, OpId id);

/// Indices that one kernel sorts, or none.
constexpr std::int64_t kMostFewIndices = 3072;

/// Whether an embedding's backward sorts its indices: of up to 3,072 it adds one after the other.
/// Source: PyTorch 2.11 aten/src/ATen/native/cuda/Embedding.cu.
bool SortsIndices(const Graph& graph, OpId id);

}  // namespace dcsim
