// Any bytes as a graph in lines (ParseGraphText), behind a first line whose hash chooses the plan:
// the shortest way to odd graphs, for everything that comes after the readers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/graph_text.h"
#include "model/passes/resolve.h"
#include "tests/fuzz/exercise.h"

namespace dcsim {
namespace {

void FuzzGraphLines(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::uint64_t bits = HashBytes(text.substr(0, end));
  const Graph graph = ParseGraphText(text.substr(end));
  const PlanSpec spec = SpecOf(bits);
  if (IsSmall(graph, spec.options)) {
    ExerciseStep(graph, Resolve(spec, graph, static_cast<int>(1 + bits % 5)), nullptr,
                 FuzzCluster());
  }
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzGraphLines({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // No such graph.
  }
  return 0;
}
