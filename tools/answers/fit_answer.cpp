#include "tools/answers/fit_answer.h"

#include <optional>
#include <utility>

#include "sim/search/parallel.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/recorder.h"

namespace dcsim {
namespace {

/// Makes recordings where dcrecord is installed; empty where it is not, or not asked for.
MakeRecording RecorderFor(const FitQuestion& question,
                          const RecordingShelf& shelf,
                          FitActivity& activity,
                          std::ostream& notes) {
  const auto recorder = question.record ? FindRecorder() : std::nullopt;
  if (!recorder) {
    return {};
  }
  return [recorder, &shelf, &activity, &notes](const AskedRecording& asked) {
    const std::string command = shelf.Command(asked);
    activity.Set("recording, " + command);
    std::string fault = RunRecorder(*recorder, shelf.Words(asked));
    activity.Set("");
    notes << (fault.empty() ? "fit: recorded with " : "fit: failed: ") << command << "\n";
    return fault;
  };
}

FitBase BaseOf(const StepOptions& options,
               const LoadedStep& step,
               const RecordingShelf& shelf,
               std::ostream& notes) {
  const NamedDocument named = LoadNamed(options.plan, "plan");
  const Json& plan = named.document.json();
  const bool is_deepspeed = IsDeepSpeedConfig(plan);
  const bool is_spec = plan.is_object() && plan.value("format", Json()) == "dc-plan-spec/1";
  if (!is_deepspeed && !is_spec) {
    notes << "fit: " << named.path
          << " is a plan with every decision made: no change of it is tried; give a plan spec\n";
  }
  return {options, step, shelf, is_deepspeed, !is_deepspeed && !is_spec};
}

}  // namespace

FitFindings AnswerFit(const FitQuestion& question,
                      const LoadedStep& step,
                      FitActivity& activity,
                      std::ostream& notes) {
  StepOptions own = question.step;
  own.workload = step.workload.folder;
  own.sizes = {};
  RecordingShelf shelf(LoadWorkload(own.workload), step.workload.graph.backend());
  const FitBase base = BaseOf(own, step, shelf, notes);
  FitSearch search;
  search.threads = ThreadsFor(question.threads);
  search.done = &activity.done;
  search.make = RecorderFor(question, shelf, activity, notes);
  return FindFits(base, shelf, search);
}

}  // namespace dcsim
