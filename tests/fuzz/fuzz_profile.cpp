// Any bytes as a dc-profile/1 file of a fixed graph: a profile that prints as it reads and can be
// simulated with, or an Error.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/profile_reader.h"
#include "model/passes/resolve.h"
#include "tests/fuzz/exercise.h"

namespace dcsim {
namespace {

void FuzzProfileFile(std::string_view text) {
  const Graph& graph = FuzzGraph();
  const Profile profile = ParseProfile(text, graph, "fuzz");
  const std::string printed = PrintProfile(profile);
  DCSIM_CHECK(PrintProfile(ParseProfile(printed, graph, "printed")) == printed);
  ExerciseStep(graph, Resolve(SpecOf(HashBytes(text)), graph, 2), &profile, FuzzCluster());
}

/// The hash of the graph, which no mutation finds: "GRAPH" stands for it.
std::string WithHash(std::string text) {
  const std::string mark = "\"GRAPH\"";
  if (const std::size_t at = text.find(mark); at != std::string::npos) {
    text.replace(at, mark.size(), "\"" + HexDigits(FuzzGraph().hash) + "\"");
  }
  return text;
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzProfileFile(dcsim::WithHash({reinterpret_cast<const char*>(data), size}));
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
