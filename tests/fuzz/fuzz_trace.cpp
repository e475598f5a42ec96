// Any bytes as a trace of torch.profiler: shown beside a predicted step, or an Error.

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "model/base/error.h"
#include "model/passes/resolve.h"
#include "sim/analysis/kernel_spans.h"
#include "sim/analysis/predict.h"
#include "sim/analysis/step_clock.h"
#include "tests/fuzz/exercise.h"
#include "tools/common/beside.h"
#include "tools/common/kineto_trace.h"
#include "tools/views/beside_text.h"

namespace dcsim {
namespace {

/// A predicted step of the fuzzers' graph, with what comparisons take.
struct Predicted {
  Schedule schedule;
  ClockedCosts clocked;
  std::vector<KernelSpan> kernels;
  Result result;
};

const Predicted& Step() {
  static const Predicted predicted = [] {
    const Plan plan = Resolve(SpecOf(0), FuzzGraph(), 2);
    const PredictionInputs inputs{FuzzGraph(), nullptr, FuzzCluster()};
    Schedule schedule = LowerFor(plan, inputs);
    ClockedCosts clocked = CostsAtClock(schedule, inputs);
    auto kernels = FindKernelSpans(schedule, clocked.costs, OptionsFor(schedule, inputs));
    Result result = Predict(schedule, plan, inputs, /*keep_timeline=*/false).result;
    return Predicted{std::move(schedule), std::move(clocked), std::move(kernels),
                     std::move(result)};
  }();
  return predicted;
}

void FuzzTrace(std::string_view text) {
  static const std::string file = "/tmp/dcsim-fuzz-trace-" + std::to_string(getpid()) + ".json";
  std::ofstream(file, std::ios::binary) << text;
  std::ostringstream notes;
  const KinetoTrace trace = LoadKinetoTrace(file, std::nullopt, notes);
  DCSIM_CHECK(!trace.steps.empty());
  for (const TracedStep& step : trace.steps) {
    DCSIM_CHECK(!step.events.empty() && step.start <= step.end);
    for (const TracedEvent& event : step.events) {
      DCSIM_CHECK(event.name < trace.names.size() && event.start <= event.end);
    }
  }
  const Predicted& step = Step();
  const Beside beside = CompareBeside(
      trace, {step.schedule, FuzzGraph(), step.kernels, step.clocked.costs, step.result});
  DCSIM_CHECK(
      Json::accept(PrintBeside(beside, step.result)
                       .dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace)));
  PrintBesideText(beside);
}

}  // namespace
}  // namespace dcsim

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    dcsim::FuzzTrace({reinterpret_cast<const char*>(data), size});
  } catch (const dcsim::Error&) {
    // What readers do with other input.
  }
  return 0;
}
