// Any bytes as a plan file, YAML or JSON: a spec or a plan that prints as it reads and can be
// simulated, or an Error.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "tests/fuzz/exercise.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

constexpr int kRanks = 3;

Plan ReadAnyPlan(const YamlDocument& document) {
  const Json& json = document.json();
  if (json.is_object() && json.contains("format") && json["format"] == "dc-plan/1") {
    return ReadPlan(json, FuzzGraph(), document.locator());
  }
  const PlanSpec spec = ReadPlanSpec(json, document.locator());
  const Json printed = PrintPlanSpec(spec);
  DCSIM_CHECK(ReadPlanSpec(printed, PointerLocator("printed")) == spec);
  printed.dump();
  return Resolve(spec, FuzzGraph(), kRanks);
}

void FuzzPlanFile(std::string_view text) {
  const Plan plan = ReadAnyPlan(YamlDocument::Parse(text, "fuzz"));
  ExercisePlanText(plan, FuzzGraph());
  if (FindPlanFaults(plan, FuzzGraph()).empty() && IsSmall(FuzzGraph(), plan.options)) {
    ExerciseStep(FuzzGraph(), plan, nullptr, FuzzCluster());
  }
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzPlanFile({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
