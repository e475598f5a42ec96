#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "model/base/error.h"
#include "sim/search/parallel.h"
#include "tools/common/config_path.h"
#include "tools/common/count_option.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/file.h"
#include "tools/common/json_text.h"
#include "tools/common/progress.h"
#include "tools/common/vary_axis.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/svg_chart.h"
#include "tools/views/sweep_plot.h"
#include "tools/views/sweep_text.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

struct SweepOptions {
  StepOptions step;
  std::vector<std::string> plans;
  std::vector<std::string> vary;
  unsigned threads = 0;
  std::string json;
  std::string csv;
  std::string plot;
};

/// The axes of --vary, and behind them the plans, where there are several, so that plans of the
/// same sizes are neighbours.
std::vector<VaryAxis> AxesOf(const SweepOptions& options) {
  std::vector<VaryAxis> axes = ParseAxes(options.vary);
  RejectDoubleAxes(axes, options.step);
  for (std::size_t i = 1; i < options.plans.size(); ++i) {
    if (std::find(options.plans.begin(), options.plans.begin() + static_cast<std::ptrdiff_t>(i),
                  options.plans[i]) != options.plans.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw Error("--plan " + options.plans[i] + ": is given twice");
    }
  }
  if (options.plans.size() > 1) {
    axes.push_back({"plan", options.plans});
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
    if (!IsDeepSpeedConfig(
            LoadYaml(FindConfig(options.plan, "plans", "plan file"), "plan file").json())) {
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

std::vector<StepVariant> VariantsOf(const SweepOptions& options,
                                    const std::vector<VaryAxis>& axes,
                                    const std::vector<SweepRow>& rows) {
  const bool resizes = std::any_of(axes.begin(), axes.end(), [](const VaryAxis& axis) {
    return axis.key == "batch" || axis.key == "gpus" || axis.key == "cluster" ||
           axis.key == "cluster.nodes" || axis.key == "cluster.gpus_per_node";
  });
  DeepSpeedMicroSteps micro_steps(options.step);
  Recordings recordings;
  std::vector<StepVariant> variants;
  for (const SweepRow& row : rows) {
    StepVariant variant{LabelOf(axes, row), options.step};
    variant.step.plan = options.plans.front();
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

std::vector<PredictedVariant> PredictRows(const SweepOptions& options,
                                          const std::vector<StepVariant>& variants) {
  std::atomic<std::size_t> done = 0;
  const ProgressTicker ticker([&] {
    return "sweep: " + std::to_string(done) + " of " + std::to_string(variants.size()) +
           " steps predicted";
  });
  return PredictVariants(variants, {ThreadsFor(options.threads), OnRefusal::kStop, &done});
}

/// What all rows share.
std::string TitleOf(const SweepOptions& options) {
  std::string title = options.step.workload;
  title += options.step.cluster.empty() ? "" : ", " + options.step.cluster;
  return title + (options.plans.size() == 1 ? ", " + options.plans.front() : "");
}

void WriteReport(const SweepOptions& options, const SweepReport& report) {
  if (!options.json.empty()) {
    WriteFile(options.json, PrintJson(PrintSweep(report)));
  }
  if (!options.csv.empty()) {
    WriteFile(options.csv, PrintSweepCsv(report));
  }
  if (!options.plot.empty()) {
    WriteFile(options.plot, PrintSweepPlot(report));
  }
}

ExitCode RunSweep(const SweepOptions& options) {
  CheckSvgPath("--plot", options.plot);
  const std::vector<VaryAxis> axes = AxesOf(options);
  SweepReport report{TitleOf(options), {}, EveryRow(axes)};
  for (const VaryAxis& axis : axes) {
    report.keys.push_back(axis.key);
  }
  const bool clusters =
      std::find(report.keys.begin(), report.keys.end(), "cluster") != report.keys.end();
  if (options.step.cluster.empty() && !clusters) {
    throw Error("--cluster is required, or --vary cluster=a,b");
  }
  const std::vector<StepVariant> variants = VariantsOf(options, axes, report.rows);
  CheckOutputs({{"--json", options.json}, {"--csv", options.csv}, {"--plot", options.plot}});
  std::vector<PredictedVariant> predicted = PredictRows(options, variants);
  for (const std::string& note : NotesOf(predicted)) {
    std::cerr << note << "\n";
  }
  bool any_fits = false;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    any_fits = any_fits || predicted[i].result.outcome == "completed";
    report.rows[i].predicted = std::move(predicted[i]);
  }
  WriteReport(options, report);
  if (options.json != "-" && options.csv != "-") {
    std::cout << PrintSweepText(report);
  }
  return any_fits ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

}  // namespace

Subcommand SweepCommand() {
  return {"sweep", "Time and memory of one step for several values of an option, or several plans",
          "  dc-sim sweep traces/qwen3-8b --cluster h200-8 --plan zero3-deepcompile \\\n"
          "    --vary stage=1,2,3 --vary gpus=2,4,8\n"
          "  dc-sim sweep traces/qwen3-8b --cluster h200-8 --plan zero3-deepcompile --plan "
          "zero3-eager \\\n"
          "    --vary gradient_accumulation_steps=1,2 --csv sweep.csv",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<SweepOptions>();
            DeclareStepInputs(app, options->step);
            app.get_option("--cluster")->required(false);
            app.add_option("--plan", options->plans,
                           "plan file (configs/plans/zero3.yaml); may be repeated")
                ->required()
                ->take_all()
                ->allow_extra_args(false);
            app.add_option("--vary", options->vary,
                           "key=a,b predicts a step for each value: batch, seq, gpus, cluster, "
                           "cluster.KEY (--cluster-set), or a key of the plan (--set); may be "
                           "repeated: every combination")
                ->take_all()
                ->allow_extra_args(false);
            AddCount(app, "--threads", options->threads, {1, 4096}, "all processors if left out");
            app.add_option("--json", options->json, "write all results as JSON; - is stdout");
            app.add_option("--csv", options->csv, "write the table as CSV; - is stdout");
            app.add_option("--plot", options->plot,
                           "draw step time and memory over the values of the first --vary (SVG)");
            return [options] { return RunSweep(*options); };
          }};
}

}  // namespace dcsim
