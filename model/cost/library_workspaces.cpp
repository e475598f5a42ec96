#include "model/cost/library_workspaces.h"

#include <algorithm>

namespace dcsim {
namespace {

/// addmm with a vector to add; a matrix goes the way of other products.
bool AddsBias(const Graph& graph) {
  std::vector<bool> is_addmm;  // by schema
  for (const std::string& schema : graph.schemas) {
    is_addmm.push_back(schema.starts_with("aten::addmm("));
  }
  return std::any_of(graph.ops.begin(), graph.ops.end(), [&](const Op& op) {
    return is_addmm[op.schema] && graph.value(op.inputs.front()).shape.size() == 1;
  });
}

}  // namespace

std::vector<Bytes> LibraryWorkspaces(const GpuSpec& gpu, const Graph& graph) {
  std::vector<Bytes> blocks = gpu.workspaces;
  if (gpu.bias_workspace > Bytes(0) && AddsBias(graph)) {
    blocks.push_back(gpu.bias_workspace);
  }
  return blocks;
}

}  // namespace dcsim
