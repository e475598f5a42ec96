// Any bytes as a dc-graph/1 file: a graph that prints as it reads and can be simulated, or an
// Error.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/graph_reader.h"
#include "model/passes/resolve.h"
#include "tests/fuzz/exercise.h"

namespace dcsim {
namespace {

void FuzzGraphFile(std::string_view text) {
  const Graph graph = ParseGraph(text, "fuzz");
  ExerciseGraphText(graph);
  const std::uint64_t bits = HashBytes(text);
  const PlanSpec spec = SpecOf(bits);
  if (IsSmall(graph, spec.options)) {
    const Plan plan = Resolve(spec, graph, static_cast<int>(1 + bits % 5));
    ExerciseStep(graph, plan, nullptr, FuzzCluster());
  }
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzGraphFile({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
