#include "model/cost/rows_by_index.h"

#include <algorithm>

namespace dcsim {

bool AddsByIndex(const Graph& graph, OpId id) {
  const auto& arguments = graph.op(id).arguments;
  return std::any_of(arguments.begin(), arguments.end(), [](const Argument& argument) {
    const bool* flag = std::get_if<bool>(&argument);
    return flag != nullptr && *flag;
  });
}

bool SortsIndices(const Graph& graph, OpId id) {
  return graph.value(graph.op(id).inputs.back()).numel() > kMostFewIndices;
}

}  // namespace dcsim
