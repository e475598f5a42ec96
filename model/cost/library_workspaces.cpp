#include "model/cost/library_workspaces.h"

#include "model/graph/cublas_calls.h"

namespace dcsim {

std::vector<Bytes> LibraryWorkspaces(const GpuSpec& gpu, const Graph& graph) {
  const auto any = [&graph](bool (*holds)(const Graph&, OpId)) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      if (holds(graph, OpId(i))) {
        return true;
      }
    }
    return false;
  };
  std::vector<Bytes> blocks = any(CallsCublas) ? gpu.workspaces : std::vector<Bytes>();
  if (any(AddsBias)) {
    blocks.insert(blocks.end(), gpu.bias_workspaces.begin(), gpu.bias_workspaces.end());
  }
  return blocks;
}

}  // namespace dcsim
