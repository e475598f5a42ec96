#include "model/graph/cublas_calls.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace dcsim {

bool CallsCublas(const Graph& graph, OpId id) {
  constexpr std::array<std::string_view, 8> kTargets = {
      "aten::mm",     "aten::addmm", "aten::bmm",   "aten::baddbmm",
      "aten::addbmm", "aten::mv",    "aten::addmv", "aten::dot"};
  return std::find(kTargets.begin(), kTargets.end(), graph.target(id)) != kTargets.end();
}

bool AddsBias(const Graph& graph, OpId id) {
  if (graph.target(id) != "aten::addmm") {
    return false;
  }
  const std::vector<ValueId>& inputs = graph.op(id).inputs;
  return !inputs.empty() && graph.value(inputs[0]).shape.size() == 1;
}

}  // namespace dcsim
