#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "model/base/text.h"
#include "model/ir/plan_reader.h"
#include "tools/answers/report_answer.h"
#include "tools/answers/search_answer.h"
#include "tools/common/answer_json.h"
#include "tools/common/count_option.h"
#include "tools/common/deepspeed_launches.h"
#include "tools/common/file.h"
#include "tools/common/interrupt.h"
#include "tools/common/json_text.h"
#include "tools/common/progress.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/dc_sim/result_writer.h"
#include "tools/views/search_plot.h"
#include "tools/views/search_text.h"
#include "tools/views/svg_chart.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

struct SearchCommandOptions {
  SearchQuestion question;
  std::string json;
  std::string save_plan;
  std::string save_front;
  std::string save_deepspeed;
  std::string save_deepspeed_plan;
  std::string plot;
  std::string report;
};

/// What a report would say of the best schedule so far. A score is no step time of a report
/// (docs/design/search.md), so the schedule is predicted, which takes longer than scoring it: at
/// most a 20th of the time.
class BestSoFar {
 public:
  explicit BestSoFar(const LoadedSearch& loaded) : loaded_(loaded) {}

  std::string Text(const Scored* best, const SearchProblem& problem, const Progress& clock) {
    constexpr double kShare = 20;
    if (best == nullptr) {
      return "none yet";
    }
    const double begin = clock.seconds();
    if (text_.empty() || begin > shown_at_ + kShare * took_) {
      const Result result = ReportPlan(loaded_.inputs(), PlanOf(problem, best->candidate)).result;
      text_ = FormatDuration(result.step_time) + " with " + FormatBytes(result.peak_reserved);
      shown_at_ = clock.seconds();
      took_ = shown_at_ - begin;
    }
    return text_;
  }

 private:
  const LoadedSearch& loaded_;
  std::string text_;
  double shown_at_ = 0;
  double took_ = 0;
};

std::string ProgressText(const SearchProgress& progress,
                         const std::string& best,
                         double seconds,
                         double time_limit) {
  const auto evaluated = static_cast<double>(progress.evaluated);
  const double share = evaluated / static_cast<double>(std::max<std::uint64_t>(1, progress.budget));
  double left = share > 0 ? seconds / share - seconds : 0;
  if (time_limit > 0) {
    left = std::min(left, time_limit - seconds);
  }
  return "search: " + std::string(progress.strategy) + ", " + Thousands(evaluated) + " of " +
         Thousands(static_cast<double>(progress.budget)) + " schedules, best " + best + ", " +
         std::to_string(static_cast<int>(std::max(0.0, left))) + " s left";
}

SearchAnswer Answer(const SearchQuestion& question, const LoadedSearch& loaded) {
  const Interrupt interrupt;
  Progress progress;
  BestSoFar best(loaded);
  SearchWatch watch;
  watch.should_stop = [&] { return interrupt.requested(); };
  watch.on_progress = [&](const SearchProgress& each, const SearchProblem& problem) {
    progress.Show([&] {
      const std::string text = best.Text(each.best, problem, progress);
      return ProgressText(each, text, progress.seconds(), question.time);
    });
  };
  SearchAnswer answer = AnswerSearch(question, loaded, watch, std::cerr);
  const auto milliseconds = static_cast<std::int64_t>(answer.seconds * 1e3);
  progress.Finish("search: " + Thousands(static_cast<double>(answer.report.search.evaluated)) +
                  " schedules in " + FormatDuration(Duration::FromMs(milliseconds)) + ", " +
                  Thousands(answer.schedules_per_second()) + " a second");
  return answer;
}

std::string FrontFile(const std::string& folder, std::size_t number) {
  return folder + "/front-" + (number < 10 ? "0" : "") + std::to_string(number) + ".json";
}

/// Plans of an earlier search behind the last one of this, which would look like a part of it.
void RemoveOldFront(const std::string& folder, std::size_t first) {
  constexpr std::size_t kMost = 100;  // as many as have names of two digits
  for (std::size_t i = first; i < kMost; ++i) {
    RemoveFile(FrontFile(folder, i));
  }
}

void WritePlans(const SearchCommandOptions& options,
                const SearchReport& report,
                const LoadedSearch& loaded,
                ResultWriter& writer) {
  const Graph& graph = loaded.workload.graph;
  if (!report.front.empty()) {
    writer.Write(options.save_plan, PrintJson(PrintPlan(report.front.front().plan, graph)));
    writer.Write(options.save_deepspeed, PrintJson(report.deepspeed.config));
    if (const ReportedPlan& best = report.front.front(); !options.save_deepspeed_plan.empty()) {
      writer.Write(options.save_deepspeed_plan,
                   PrintJson(PrintDeepSpeedLaunches(best.plan, loaded.recorded.value_or(graph),
                                                    graph, best.result)));
    }
    writer.Write(options.plot, options.plot.empty() ? "" : PrintSearchPlot(report));
    if (!options.report.empty()) {
      writer.Write(options.report, ReportStep(report.front.front().plan, loaded.inputs(),
                                              RivalsOf(report), std::nullopt)
                                       .page);
    }
  }
  if (options.save_front.empty()) {
    return;
  }
  for (std::size_t i = 0; i < report.front.size(); ++i) {
    writer.Write(FrontFile(options.save_front, i),
                 PrintJson(PrintPlan(report.front[i].plan, graph)));
  }
  writer.Try([&] { RemoveOldFront(options.save_front, report.front.size()); });
}

/// Asked before the search, which takes minutes.
void RequireOutputs(const SearchCommandOptions& options) {
  CheckSvgPath("--plot", options.plot);
  CheckOutputs({{"--json", options.json},
                {"--plot", options.plot},
                {"--report", options.report},
                {"--save-plan", options.save_plan},
                {"--save-deepspeed", options.save_deepspeed},
                {"--save-deepspeed-plan", options.save_deepspeed_plan}});
  if (!options.save_front.empty()) {
    MakeFolder(options.save_front);
    CheckOutputs({{"--save-front", FrontFile(options.save_front, 0)}});
  }
}

ExitCode RunSearch(const SearchCommandOptions& options) {
  SearchQuestion question = options.question;
  question.for_deepspeed = !options.save_deepspeed_plan.empty();
  const LoadedSearch loaded = LoadSearch(question, std::cerr);
  RequireOutputs(options);
  const Graph& graph = loaded.workload.graph;
  const SearchAnswer answer = Answer(question, loaded);
  ResultWriter writer;
  WritePlans(options, answer.report, loaded, writer);
  writer.Write(options.json, PrintAnswer(PrintSearchAnswer(answer, graph)));
  if (options.json != "-") {
    std::cout << (answer.fits() ? PrintSearchText(answer.report, graph)
                                : PrintNothingFits(answer.report));
  }
  writer.ThrowIfFailed();
  return answer.fits() ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

void DeclareSearchOptions(CLI::App& app, SearchCommandOptions& options) {
  SearchQuestion& question = options.question;
  app.add_option("WORKLOAD", question.workload, "folder of a recorded workload (traces/qwen3-8b)")
      ->required();
  DeclareSizes(app, question.sizes);
  app.add_option("--cluster", question.cluster, "cluster file (configs/clusters/h200-8.yaml)")
      ->required();
  DeclareClusterOverrides(app, question.cluster_overrides);
  DeclareOpTimes(app, question.times);
  app.add_option("--space", question.space,
                 "space file; configs/spaces/default.yaml says what is searched without one");
  app.add_option("--backend", question.backend,
                 "aten: the recorded operators; inductor: the compiled kernels that dcrecord "
                 "--backend inductor records; if left out, that of --baseline and --start, else "
                 "inductor where it is recorded")
      ->check(CLI::IsMember({"aten", "inductor"}));
  app.add_option("--memory-limit", question.memory_limit,
                 "most bytes reserved on a GPU, such as 60GiB; all that it leaves to tensors if "
                 "left out");
  app.add_option("--baseline", question.baseline,
                 "plan file to compare with; if left out, DeepCompile's plan of the best plan's "
                 "stage, eager DeepSpeed's, and FSDP2's");
  app.add_option("--start", question.starts,
                 "plan file to start from besides the baseline, such as the best of an earlier "
                 "search; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  AddCount(app, "--gpus", question.gpus, {},
           "data-parallel ranks; all GPUs of the cluster if left out");
  AddCount(app, "--seed", question.seed, {0, INT64_MAX}, "of the random choices; 0 if left out");
  AddCount(app, "--schedules", question.schedules, {},
           "about how many schedules to evaluate; 60000");
  AddSeconds(app, "--time", question.time, "seconds after which to stop with what was found");
  AddCount(app, "--threads", question.threads, {1, 4096}, "all processors if left out");
  app.add_flag("--exhaustive", question.exhaustive, "evaluate every schedule of a small space");
  app.add_option("--json", options.json, "write the result as JSON; - is stdout");
  app.add_option("--plot", options.plot, "draw the front: step time against memory (SVG)");
  app.add_option("--report", options.report,
                 "write the best step beside the front as one page (.html)");
  app.add_option("--save-plan", options.save_plan, "write the best plan");
  app.add_option("--save-deepspeed", options.save_deepspeed,
                 "write the DeepSpeed JSON that comes closest to the best plan");
  app.add_option("--save-deepspeed-plan", options.save_deepspeed_plan,
                 "write the best plan for dcsim_deepspeed; with configs/spaces/deepspeed.yaml");
  app.add_option("--save-front", options.save_front,
                 "folder for the plans of the front that are shown: front-00.json, ...");
}

}  // namespace

Subcommand SearchCommand() {
  return {"search", "The schedule with the shortest step that fits in memory, and its rivals",
          "  dc-sim search traces/qwen3-8b --cluster configs/clusters/h200-8.yaml\n"
          "  dc-sim search traces/qwen3-8b --cluster configs/clusters/h200-8.yaml \\\n"
          "    --memory-limit 60GiB --json search.json --save-plan best.json",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<SearchCommandOptions>();
            DeclareSearchOptions(app, *options);
            return [options] { return RunSearch(*options); };
          }};
}

}  // namespace dcsim
