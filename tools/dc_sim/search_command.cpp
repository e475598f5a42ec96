#include <algorithm>
#include <iostream>
#include <memory>

#include "model/base/error.h"
#include "model/base/quantity.h"
#include "model/base/text.h"
#include "model/ir/plan_reader.h"
#include "model/passes/resolve.h"
#include "sim/analysis/step_clock.h"
#include "sim/search/parallel.h"
#include "sim/search/useful_options.h"
#include "tools/common/count_option.h"
#include "tools/common/deepspeed_launches.h"
#include "tools/common/file.h"
#include "tools/common/interrupt.h"
#include "tools/common/json_text.h"
#include "tools/common/load.h"
#include "tools/common/progress.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/dc_sim/result_writer.h"
#include "tools/dc_sim/search_report.h"
#include "tools/dc_sim/search_starts.h"
#include "tools/views/search_plot.h"
#include "tools/views/search_text.h"
#include "tools/views/svg_chart.h"
#include "tools/views/table_text.h"

namespace dcsim {
namespace {

struct SearchCommandOptions {
  std::string workload;
  AskedSizes sizes;
  std::string cluster;
  std::vector<std::string> cluster_overrides;
  OpTimes times = OpTimes::kProfiled;
  std::string space;
  std::string backend;
  std::string memory_limit;
  std::string baseline;
  std::vector<std::string> starts;
  std::string json;
  std::string save_plan;
  std::string save_front;
  std::string save_deepspeed;
  std::string save_deepspeed_plan;
  std::string plot;
  int gpus = 0;
  unsigned threads = 0;
  std::uint64_t seed = 0;
  std::uint64_t schedules = SearchSettings().budget;
  double time = 0;
  bool exhaustive = false;
};

Bytes ParseMemoryLimit(const std::string& text) {
  const auto bytes = FindBytes(text);
  if (!bytes || *bytes <= Bytes(0)) {
    throw Error("--memory-limit " + text + ": expected an amount of memory, such as 60GiB");
  }
  return *bytes;
}

/// Plain ZeRO-3 that trains as these options say.
PlanSpec PlainSpec(const ScheduleOptions& training) {
  PlanSpec spec;
  spec.options.backend = training.backend;
  spec.options.gradient_handling = training.gradient_handling;
  spec.options.compute_grad_norm = training.compute_grad_norm;
  spec.options.gradient_accumulation_steps = training.gradient_accumulation_steps;
  spec.options.gradient_clipping = training.gradient_clipping;
  return spec;
}

LoadedSearch Load(const SearchCommandOptions& options) {
  Workload recorded = LoadWorkload(options.workload, options.sizes);
  Cluster cluster = LoadChangedCluster(options.cluster, options.cluster_overrides);
  auto measured = FindProfile(recorded, cluster.gpu.name, options.times);
  const int ranks = RanksFor(options.gpus, cluster);
  SearchSpace space = options.space.empty()
                          ? ReadSearchSpace(DefaultSearchSpace(), PointerLocator("default space"))
                          : LoadSpace(options.space);
  if (!options.memory_limit.empty()) {
    space.memory_limit = ParseMemoryLimit(options.memory_limit);
  }
  std::vector<std::string> plans = options.starts;
  plans.insert(plans.begin(), options.baseline);
  const AskedForm form = SearchForm(options.backend, plans, space,
                                    DeepSpeedJobOf(recorded.graph, ranks, BatchSizes::kFile));
  std::optional<Graph> operators = recorded.graph;
  auto [workload, profile] = TakeForm({std::move(recorded), std::move(measured)}, form, std::cerr);
  if (!workload.graph.compiled) {
    operators.reset();
  } else if (SearchCompiled(workload.graph, space)) {
    std::cerr << "search: over ZeRO-3; stages 1 and 2 have another compiled graph, which a space "
                 "of these stages searches\n";
  }
  const bool lacks_copies = LeaveOutUnmeasuredCopies(cluster, ranks, space);
  LoadedSearch loaded{std::move(workload), std::move(operators), std::move(cluster),
                      std::move(profile),  std::move(space),     ranks,
                      std::nullopt,        lacks_copies};
  if (!options.baseline.empty()) {
    loaded.baseline = LoadPlan(options.baseline, {}, loaded.inputs(), loaded.ranks);
    NoteRecomputation(options.workload, loaded.workload.graph, *loaded.baseline);
    TakeTraining(loaded.baseline->options, loaded.space);
  }
  return loaded;
}

/// What a report would say of the best schedule so far. A score is no step time of a report
/// (docs/design/search.md), so the schedule is predicted, which takes longer than scoring it: at
/// most a 20th of the time.
class BestSoFar {
 public:
  BestSoFar(const LoadedSearch& loaded, const SearchProblem& problem)
      : loaded_(loaded),
        problem_(problem) {}

  std::string Text(const Scored* best, const Progress& clock) {
    constexpr double kShare = 20;
    if (best == nullptr) {
      return "none yet";
    }
    const double begin = clock.seconds();
    if (text_.empty() || begin > shown_at_ + kShare * took_) {
      const Result result = ReportPlan(loaded_, PlanOf(problem_, best->candidate)).result;
      text_ = FormatDuration(result.step_time) + " with " + FormatBytes(result.peak_reserved);
      shown_at_ = clock.seconds();
      took_ = shown_at_ - begin;
    }
    return text_;
  }

 private:
  const LoadedSearch& loaded_;
  const SearchProblem& problem_;
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

SearchSettings SettingsOf(const SearchCommandOptions& options, std::vector<Candidate> starts) {
  CheckSvgPath("--plot", options.plot);
  SearchSettings settings;
  settings.method = options.exhaustive ? SearchMethod::kExhaustive : SearchMethod::kDefault;
  settings.seed = options.seed;
  settings.budget = options.schedules;
  settings.starts = std::move(starts);
  return settings;
}

struct TimedSearch {
  SearchResult result;
  double seconds = 0;
};

TimedSearch RunTimed(const SearchCommandOptions& options,
                     Evaluator& evaluator,
                     const LoadedSearch& loaded,
                     SearchSettings settings) {
  const Interrupt interrupt;
  Progress progress;
  BestSoFar best(loaded, evaluator.problem());
  settings.should_stop = [&] {
    return interrupt.requested() || (options.time > 0 && progress.seconds() > options.time);
  };
  settings.on_progress = [&](const SearchProgress& each) {
    progress.Show([&] {
      const std::string text = best.Text(each.best, progress);
      return ProgressText(each, text, progress.seconds(), options.time);
    });
  };
  TimedSearch timed{Search(evaluator, loaded.space, settings), 0};
  timed.seconds = progress.seconds();
  const double rate = static_cast<double>(timed.result.evaluated) / std::max(1e-9, timed.seconds);
  progress.Finish("search: " + Thousands(static_cast<double>(timed.result.evaluated)) +
                  " schedules in " +
                  FormatDuration(Duration::FromMs(static_cast<std::int64_t>(timed.seconds * 1e3))) +
                  ", " + Thousands(rate) + " a second");
  return timed;
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

std::string JsonText(const SearchCommandOptions& options,
                     const SearchReport& report,
                     const TimedSearch& timed,
                     const Graph& graph) {
  Json document = PrintSearch(report, graph);
  document["seed"] = options.seed;
  document["seconds"] = timed.seconds;
  document["schedules_per_second"] =
      static_cast<double>(timed.result.evaluated) / std::max(1e-9, timed.seconds);
  return PrintJson(document);
}

/// The clock at which all schedules are scored: a fixed one changes none of the shortcuts, and the
/// schedules worth finding are near that of a step whose gathers are ahead. 0 without a power
/// model.
double SearchClock(const LoadedSearch& loaded) {
  PlanSpec spec = PlainSpec(loaded.space.options.front());
  constexpr int kAhead = 8;
  spec.gather_ahead = kAhead;
  const Plan plan = Resolve(spec, loaded.workload.graph, loaded.ranks);
  return FindStepClock(LowerFor(plan, loaded.inputs()), loaded.inputs());
}

/// Asked before the search, which takes minutes.
void RequireOutputs(const SearchCommandOptions& options) {
  CheckOutputs({{"--json", options.json},
                {"--plot", options.plot},
                {"--save-plan", options.save_plan},
                {"--save-deepspeed", options.save_deepspeed},
                {"--save-deepspeed-plan", options.save_deepspeed_plan}});
  if (!options.save_front.empty()) {
    MakeFolder(options.save_front);
    CheckOutputs({{"--save-front", FrontFile(options.save_front, 0)}});
  }
}

ExitCode RunSearch(const SearchCommandOptions& options) {
  const LoadedSearch loaded = Load(options);
  RequireOutputs(options);
  const Graph& graph = loaded.workload.graph;
  if (!options.save_deepspeed_plan.empty()) {
    RequireDeepSpeedSpace(loaded.space, graph, options.space);
  }
  PredictionInputs at_clock = loaded.inputs();
  at_clock.clock_mhz = SearchClock(loaded);
  SearchProblem problem = MakeProblem(at_clock, loaded.ranks);
  std::vector<Candidate> starts =
      SearchStarts(loaded, options.starts, !options.save_deepspeed_plan.empty(), problem);
  Evaluator evaluator(problem, {ThreadsFor(options.threads), loaded.space.memory_limit});
  const TimedSearch timed =
      RunTimed(options, evaluator, loaded, SettingsOf(options, std::move(starts)));
  if (loaded.lacks_copies) {
    std::cerr << "search: gathers by copy engines were left out: "
              << (loaded.cluster.NodesOf(loaded.ranks) > 1
                      ? "they reach the GPUs of one node alone"
                      : options.cluster + " has no copy_engines (dc-run calibrate measures them)")
              << "\n";
  }

  SearchReport report;
  report.workload = graph.name;
  report.gpu = loaded.cluster.gpu.name;
  report.ranks = problem.ranks;
  report.limit = evaluator.memory_limit();
  report.search = timed.result;
  report.front = ReportFront(loaded, problem, timed.result.front, report.limit);
  AddBaselines(loaded, problem, report);
  if (!report.front.empty()) {
    AddDeepSpeed(loaded, report);
    report.expandable_reserved = ReservedIfExpandable(loaded, report.front.front().plan);
  } else if (timed.result.least) {
    report.expandable_reserved =
        ReservedIfExpandable(loaded, PlanOf(problem, timed.result.least->candidate));
  }
  ResultWriter writer;
  WritePlans(options, report, loaded, writer);
  writer.Write(options.json, JsonText(options, report, timed, graph));
  const bool fits = !report.front.empty();
  if (options.json != "-") {
    std::cout << (fits ? PrintSearchText(report, graph) : PrintNothingFits(report));
  }
  writer.ThrowIfFailed();
  return fits ? ExitCode::kDone : ExitCode::kAnswerIsNo;
}

void DeclareSearchOptions(CLI::App& app, SearchCommandOptions& options) {
  app.add_option("WORKLOAD", options.workload, "folder of a recorded workload (traces/qwen3-8b)")
      ->required();
  DeclareSizes(app, options.sizes);
  app.add_option("--cluster", options.cluster, "cluster file (configs/clusters/h200-8.yaml)")
      ->required();
  DeclareClusterOverrides(app, options.cluster_overrides);
  DeclareOpTimes(app, options.times);
  app.add_option("--space", options.space,
                 "space file; configs/spaces/default.yaml says what is searched without one");
  app.add_option("--backend", options.backend,
                 "aten: the recorded operators; inductor: the compiled kernels that dcrecord "
                 "--backend inductor records; if left out, that of --baseline and --start, else "
                 "inductor where it is recorded")
      ->check(CLI::IsMember({"aten", "inductor"}));
  app.add_option("--memory-limit", options.memory_limit,
                 "most bytes reserved on a GPU, such as 60GiB; all that it leaves to tensors if "
                 "left out");
  app.add_option("--baseline", options.baseline,
                 "plan file to compare with; if left out, DeepSpeed's own plans of the best plan's "
                 "stage: DeepCompile's, and eager DeepSpeed's");
  app.add_option("--start", options.starts,
                 "plan file to start from besides the baseline, such as the best of an earlier "
                 "search; may be repeated")
      ->take_all()
      ->allow_extra_args(false);
  AddCount(app, "--gpus", options.gpus, {},
           "data-parallel ranks; all GPUs of the cluster if left out");
  AddCount(app, "--seed", options.seed, {0, INT64_MAX}, "of the random choices; 0 if left out");
  AddCount(app, "--schedules", options.schedules, {}, "schedules to evaluate at most; 60000");
  AddSeconds(app, "--time", options.time, "seconds after which to stop with what was found");
  AddCount(app, "--threads", options.threads, {1, 4096}, "all processors if left out");
  app.add_flag("--exhaustive", options.exhaustive, "evaluate every schedule of a small space");
  app.add_option("--json", options.json, "write the result as JSON; - is stdout");
  app.add_option("--plot", options.plot, "draw the front: step time against memory (SVG)");
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
