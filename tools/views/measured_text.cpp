#include "tools/views/measured_text.h"

#include <algorithm>

#include "model/base/text.h"
#include "tools/views/table_text.h"

namespace dcsim {

std::string PrintMeasuredText(const Result& result, const std::string& plan_file) {
  std::string text = result.workload + ", " + plan_file + ", " + std::to_string(result.gpus) +
                     " ranks: measured, " + result.outcome + "\n\n";
  if (result.outcome != "completed") {
    return text + TableLine("stopped at", "", result.stop->task);
  }
  const auto& times = result.measurement->step_times;
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  text += TableLine("step time", FormatDuration(result.step_time),
                    "median of " + std::to_string(times.size()) + ", " + FormatDuration(*least) +
                        " to " + FormatDuration(*most) + ", " +
                        Thousands(result.tokens_per_second) + " tokens/s");
  text += TableLine("  compute", FormatDuration(result.compute), "of the traced step");
  text += TableLine("  exposed communication", FormatDuration(result.exposed_communication),
                    "of the traced step");
  text += TableLine("peak memory, reserved", FormatBytes(result.peak_reserved), "");
  text += TableLine("  allocated", FormatBytes(result.peak_allocated), "");
  text += TableLine("  outside the allocator", FormatBytes(result.outside_allocator),
                    "context, modules, NCCL");
  text += TableLine("after the step", FormatBytes(result.allocated_after_step), "allocated");
  std::string losses;
  for (const double loss : result.measurement->losses) {
    losses += (losses.empty() ? "" : " ") + std::to_string(loss);
  }
  return text + TableLine("losses", "", losses);
}

}  // namespace dcsim
