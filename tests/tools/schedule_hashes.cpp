// schedule-hashes WORKLOAD CLUSTER PLAN...: prints a hash of the text of each plan's schedule, for
// tools/gate.py.

#include <iostream>
#include <string>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/schedule_text.h"
#include "tools/common/step_options.h"

namespace dcsim {
namespace {

/// The schedule, or the error where the plan does not fit the workload or the cluster.
std::string TextOf(const StepOptions& options) {
  try {
    const LoadedStep step = LoadStep(options);
    return PrintScheduleText(LowerStep(step), step.workload.graph);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace
}  // namespace dcsim

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "expected WORKLOAD CLUSTER PLAN...\n";
    return 2;
  }
  dcsim::StepOptions options;
  options.workload = argv[1];
  options.cluster = argv[2];
  for (int i = 3; i < argc; ++i) {
    options.plan = argv[i];
    std::cout << dcsim::HexDigits(dcsim::HashBytes(dcsim::TextOf(options))) << "\n";
  }
  return 0;
}
