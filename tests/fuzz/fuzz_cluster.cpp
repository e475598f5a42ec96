// Any bytes as a cluster file, its GPU inside: a cluster on which a step can be priced and
// simulated, or an Error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/base/error.h"
#include "model/cost/kernel_models.h"
#include "model/passes/resolve.h"
#include "tests/fuzz/exercise.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

void FuzzClusterFile(std::string_view text) {
  const YamlDocument document = YamlDocument::Parse(text, "fuzz");
  const Cluster cluster = ReadCluster(document.json(), document.locator(), kKernelRatesReader);
  PlanSpec spec;
  spec.options.reduce_bucket = 10'000;
  for (const int stage : {1, 3}) {
    spec.options.stage = stage;
    const Plan plan = Resolve(spec, FuzzGraph(), cluster.gpus());
    ExerciseStep(FuzzGraph(), plan, nullptr, cluster);
  }
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzClusterFile({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
