#include "tools/common/step_variants.h"

#include <algorithm>
#include <sstream>

#include "model/base/error.h"
#include "sim/search/parallel.h"

namespace dcsim {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

PredictedVariant PredictOne(const StepOptions& options) {
  std::ostringstream notes;
  LoadedStep step = LoadStep(options, notes);
  PredictedVariant predicted;
  predicted.result = PredictPlan(step.plan, step.inputs()).result;
  predicted.profiled = step.profile.has_value();
  predicted.notes = Lines(notes.str());
  if (predicted.result.outcome == "out_of_memory") {
    step.cluster.gpu.memory = kAmpleMemory;
    predicted.unlimited = PredictPlan(step.plan, step.inputs()).result;
  }
  return predicted;
}

/// The lowest index of a refused variant so far.
class LowestIndex {
 public:
  void Note(std::size_t index) {
    std::size_t lowest = lowest_;
    while (index < lowest && !lowest_.compare_exchange_weak(lowest, index)) {
    }
  }
  bool IsBelow(std::size_t index) const { return lowest_ < index; }

 private:
  std::atomic<std::size_t> lowest_ = SIZE_MAX;
};

}  // namespace

std::optional<Bytes> ReservedMemory(const PredictedVariant& predicted) {
  const Result& result = predicted.unlimited ? *predicted.unlimited : predicted.result;
  return predicted.refused.empty() && result.outcome == "completed"
             ? std::optional(result.peak_reserved)
             : std::nullopt;
}

std::vector<PredictedVariant> PredictVariants(const std::vector<StepVariant>& variants,
                                              const VariantRun& run) {
  std::vector<PredictedVariant> predicted(variants.size());
  LowestIndex refused;
  ParallelFor(variants.size(), run.threads, [&](std::size_t i) {
    if (refused.IsBelow(i)) {
      return;  // nobody will see it
    }
    try {
      predicted[i] = PredictOne(variants[i].step);
    } catch (const Error& error) {
      predicted[i].refused = error.what();
      if (run.on_refusal == OnRefusal::kStop) {
        refused.Note(i);
      }
    }
    if (run.done != nullptr) {
      ++*run.done;
    }
  });
  for (std::size_t i = 0; run.on_refusal == OnRefusal::kStop && i < variants.size(); ++i) {
    if (!predicted[i].refused.empty()) {
      const std::string& label = variants[i].label;
      throw Error((label.empty() ? "" : label + ": ") + predicted[i].refused);
    }
  }
  return predicted;
}

std::vector<std::string> NotesOf(const std::vector<PredictedVariant>& predicted) {
  std::vector<std::string> notes;
  for (const PredictedVariant& each : predicted) {
    for (const std::string& line : each.notes) {
      if (std::find(notes.begin(), notes.end(), line) == notes.end()) {
        notes.push_back(line);
      }
    }
  }
  return notes;
}

}  // namespace dcsim
