#include "model/cost/library_workspaces.h"

#include <algorithm>

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
  if (gpu.bias_workspace > Bytes(0) && any(AddsBias)) {
    blocks.push_back(gpu.bias_workspace);
  }
  return blocks;
}

}  // namespace dcsim
