#include "model/cost/library_workspaces.h"

namespace dcsim {
namespace {

/// addmm with a vector to add; a matrix goes the way of other products.
bool AddsBias(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  return graph.target(id) == "aten::addmm" && graph.value(op.inputs.front()).shape.size() == 1;
}

}  // namespace

std::vector<Bytes> LibraryWorkspaces(const GpuSpec& gpu, const Graph& graph) {
  std::vector<Bytes> blocks = gpu.workspaces;
  if (gpu.bias_workspace > Bytes(0)) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      if (AddsBias(graph, OpId(i))) {
        blocks.push_back(gpu.bias_workspace);
        break;
      }
    }
  }
  return blocks;
}

}  // namespace dcsim
