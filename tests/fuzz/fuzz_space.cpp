// Any bytes as a search space: one in which schedules can be scored, and the best of them lowered,
// or an Error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/base/error.h"
#include "model/passes/resolve.h"
#include "sim/search/search.h"
#include "tests/fuzz/exercise.h"
#include "tools/common/yaml_document.h"

namespace dcsim {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMostOptions = 4;  // of a space that is searched; each has to be lowered
constexpr std::uint64_t kSchedules = 24;

bool IsQuick(const SearchSpace& space) {
  return space.options.size() <= kMostOptions &&
         std::all_of(space.options.begin(), space.options.end(),
                     [](const ScheduleOptions& options) { return IsSmall(FuzzGraph(), options); });
}

void FuzzSpaceFile(std::string_view text) {
  const YamlDocument document = YamlDocument::Parse(text, "fuzz");
  SearchSpace space = ReadSearchSpace(document.json(), document.locator());
  DCSIM_CHECK(!space.options.empty());
  for (const ScheduleOptions& options : space.options) {
    DCSIM_CHECK(FindOptionFaults(options).empty()) << FindOptionFaults(options).front();
  }
  TakeTraining(space.options.front(), space);
  if (!IsQuick(space)) {
    return;
  }
  const PredictionInputs inputs{FuzzGraph(), nullptr, FuzzCluster()};
  const SearchProblem problem = MakeProblem(inputs, kRanks);
  Evaluator evaluator(problem, {1, space.memory_limit});
  SearchSettings settings;
  settings.budget = kSchedules;
  const SearchResult result = Search(evaluator, space, settings);
  if (!result.front.empty()) {
    const Plan plan = PlanOf(problem, result.front.front().candidate);
    ExerciseStep(FuzzGraph(), plan, nullptr, FuzzCluster());
  }
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzSpaceFile({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
