#pragma once

#include <string>
#include <vector>

#include "tools/common/recorded_sizes.h"
#include "tools/common/step_options.h"

namespace dcsim {

/// One change of a step that may make it fit, or faster. It trains the same model with the same
/// global batch, unless its label says another.
struct FitChange {
  std::string kind;                         // of two changes of a kind a step takes one
  std::string label;                        // for people: "expandable segments"
  std::string how;                          // what to type or write; empty: the recording alone
  std::vector<std::string> overrides = {};  // of --set
  AskedRecording recording = {};            // what it needs recorded
  int gpus = 0;                             // ranks; 0: as before
  std::vector<std::string> cluster_overrides = {};
  std::string impossible = {};  // why it cannot be predicted
};

/// What changes start from.
struct FitBase {
  StepOptions options;
  const LoadedStep& step;
  const RecordingShelf& shelf;
  bool is_deepspeed = false;  // the plan file is a DeepSpeed configuration
  bool is_decided = false;    // the plan file has every decision made: no option changes it
};

/// The changes that a step may take, in the order of FitChange::kind. Which of them its policy
/// refuses is for LoadStep to say. None of a plan that is decided.
std::vector<FitChange> ChangesOf(const FitBase& base);

/// Whether a change has to have a recording of its own.
bool NeedsRecording(const FitChange& change);

/// What several changes, each of another kind, ask of the recorder together.
AskedRecording MergedRecording(const std::vector<FitChange>& changes);

/// The step with these changes, on the recording in `folder`, and on the backend of the step now:
/// another one's times would not be the changes'. Eager DeepSpeed alone runs another backend with
/// DeepCompile. The accumulation steps keep the
/// global batch; with more GPUs they may not, and then stay what they are. Nothing where no whole
/// number of accumulation steps keeps the global batch with another micro-batch.
std::optional<StepOptions> Changed(const FitBase& base,
                                   const std::vector<FitChange>& changes,
                                   const std::string& folder);

}  // namespace dcsim
