#include "tools/answers/sweep_answer.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "model/base/error.h"
#include "sim/search/parallel.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/vary_axis.h"

namespace dcsim {
namespace {

/// The axes of --vary, and behind them the plans, where there are several, so that plans of the
/// same sizes are neighbours.
std::vector<VaryAxis> AxesOf(const SweepQuestion& question) {
  std::vector<VaryAxis> axes = ParseAxes(question.vary);
  RejectDoubleAxes(axes, question.step);
  for (std::size_t i = 1; i < question.plans.size(); ++i) {
    if (std::find(question.plans.begin(), question.plans.begin() + static_cast<std::ptrdiff_t>(i),
                  question.plans[i]) != question.plans.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error("--plan " + question.plans[i] + ": is given twice");
    }
  }
  if (question.plans.size() > 1) {
    axes.push_back({"plan", question.plans});
  }
  if (axes.empty()) {
    throw Error("sweep: nothing varies; give --vary key=a,b or several --plan");
  }
  return axes;
}

std::size_t CountRows(const std::vector<VaryAxis>& axes) {
  constexpr std::size_t kMost = 10'000;
  std::size_t count = 1;
  for (const VaryAxis& axis : axes) {
    count *= axis.values.size();
    if (count > kMost) {
      throw Error("sweep: more than 10000 rows; give fewer values");
    }
  }
  return count;
}

/// Every combination of values; the last axis changes fastest.
std::vector<SweepRow> EveryRow(const std::vector<VaryAxis>& axes) {
  std::vector<SweepRow> rows(CountRows(axes));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::size_t rest = i;
    rows[i].values.resize(axes.size());
    for (std::size_t axis = axes.size(); axis-- > 0;) {
      const auto& values = axes[axis].values;
      rows[i].values[axis] = values[rest % values.size()];
      rest /= values.size();
    }
  }
  return rows;
}

/// The micro-steps that a DeepSpeed configuration names for the workload itself on all GPUs of the
/// base, which other sizes and ranks keep.
class DeepSpeedMicroSteps {
 public:
  explicit DeepSpeedMicroSteps(const StepOptions& base) : base_(base) {}

  void Keep(StepOptions& options) {
    if (!IsDeepSpeedConfig(LoadNamed(options.plan, "plan").document.json())) {
      return;
    }
    options.batches = BatchSizes::kRecording;
    const bool given = std::any_of(
        options.overrides.begin(), options.overrides.end(),
        [](const std::string& each) { return each.starts_with("gradient_accumulation_steps="); });
    if (!given) {
      options.overrides.push_back("gradient_accumulation_steps=" + std::to_string(OfFile(options)));
    }
  }

 private:
  int OfFile(const StepOptions& options) {
    const auto known = steps_.find(options.plan);
    if (known != steps_.end()) {
      return known->second;
    }
    StepOptions own = base_;
    own.plan = options.plan;
    own.cluster = options.cluster;
    std::ostringstream dropped;  // rows give the notes
    const int steps = LoadStep(own, dropped).plan.options.gradient_accumulation_steps;
    return steps_.emplace(options.plan, steps).first->second;
  }

  const StepOptions& base_;
  std::map<std::string, int> steps_;
};

/// Finds the recordings of other sizes once for all rows that have them.
class Recordings {
 public:
  void Resolve(StepOptions& options) {
    if (options.sizes.batch == 0 && options.sizes.sequence == 0) {
      return;
    }
    const auto key = std::pair(options.sizes.batch, options.sizes.sequence);
    if (!folders_.contains(key)) {
      folders_[key] = LoadWorkload(options.workload, options.sizes).folder;
    }
    options.workload = folders_[key];
    options.sizes = {};
  }

 private:
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> folders_;
};

std::string LabelOf(const std::vector<VaryAxis>& axes, const SweepRow& row) {
  std::string label;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    label += (i == 0 ? "" : ", ") + axes[i].key + "=" + row.values[i];
  }
  return label;
}

std::vector<StepVariant> VariantsOf(const SweepQuestion& question,
                                    const std::vector<VaryAxis>& axes,
                                    const std::vector<SweepRow>& rows) {
  const bool resizes = std::any_of(axes.begin(), axes.end(), [](const VaryAxis& axis) {
    return axis.key == "batch" || axis.key == "gpus" || axis.key == "cluster" ||
           axis.key == "cluster.nodes" || axis.key == "cluster.gpus_per_node";
  });
  DeepSpeedMicroSteps micro_steps(question.step);
  Recordings recordings;
  std::vector<StepVariant> variants;
  for (const SweepRow& row : rows) {
    StepVariant variant{LabelOf(axes, row), question.step};
    variant.step.plan = question.plans.front();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].key == "plan") {
        variant.step.plan = row.values[i];
      } else {
        SetAxis(axes[i], row.values[i], variant.step);
      }
    }
    if (resizes) {
      micro_steps.Keep(variant.step);
    }
    recordings.Resolve(variant.step);
    variants.push_back(std::move(variant));
  }
  return variants;
}

/// What all rows share.
std::string TitleOf(const SweepQuestion& question) {
  std::string title = question.step.workload;
  title += question.step.cluster.empty() ? "" : ", " + question.step.cluster;
  return title + (question.plans.size() == 1 ? ", " + question.plans.front() : "");
}

}  // namespace

SweepSteps ListSweep(const SweepQuestion& question) {
  const std::vector<VaryAxis> axes = AxesOf(question);
  SweepSteps steps{{TitleOf(question), {}, EveryRow(axes)}, {}};
  std::vector<std::string>& keys = steps.report.keys;
  for (const VaryAxis& axis : axes) {
    keys.push_back(axis.key);
  }
  if (question.step.cluster.empty() &&
      std::find(keys.begin(), keys.end(), "cluster") == keys.end()) {
    throw Error("--cluster is required, or --vary cluster=a,b");
  }
  steps.variants = VariantsOf(question, axes, steps.report.rows);
  return steps;
}

SweepReport PredictSweep(SweepSteps steps, unsigned threads, std::atomic<std::size_t>* done) {
  std::vector<PredictedVariant> predicted =
      PredictVariants(steps.variants, {ThreadsFor(threads), OnRefusal::kStop, done});
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    steps.report.rows[i].predicted = std::move(predicted[i]);
  }
  return std::move(steps.report);
}

std::vector<std::string> NotesOf(const SweepReport& report) {
  std::vector<PredictedVariant> predicted;
  predicted.reserve(report.rows.size());
  for (const SweepRow& row : report.rows) {
    predicted.push_back({});
    predicted.back().notes = row.predicted.notes;
  }
  return NotesOf(predicted);
}

bool AnyCompletes(const SweepReport& report) {
  return std::any_of(report.rows.begin(), report.rows.end(), [](const SweepRow& row) {
    return row.predicted.result.outcome == "completed";
  });
}

}  // namespace dcsim
