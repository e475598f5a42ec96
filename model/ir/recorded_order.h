#pragma once

#include <vector>

#include "model/ir/graph.h"

namespace dcsim {

/// The ops of a graph in the order in which they were recorded.
inline std::vector<OpId> RecordedOrder(const Subgraph& subgraph) {
  std::vector<OpId> order;
  order.reserve(subgraph.op_count);
  for (std::size_t i = 0; i < subgraph.op_count; ++i) {
    order.emplace_back(subgraph.first_op + i);
  }
  return order;
}

}  // namespace dcsim
