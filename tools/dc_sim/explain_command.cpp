#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <iostream>
#include <map>
#include <memory>

#include "model/base/error.h"
#include "model/ir/task_label.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "sim/analysis/critical_path.h"
#include "sim/analysis/step_clock.h"
#include "sim/analysis/what_if.h"
#include "sim/search/evaluator.h"
#include "sim/search/persistence.h"
#include "tools/common/answer_json.h"
#include "tools/common/file.h"
#include "tools/common/step_options.h"
#include "tools/dc_sim/commands.h"
#include "tools/views/explain_text.h"
#include "tools/views/result_text.h"

namespace dcsim {
namespace {

/// A loaded step with its whole schedule.
struct LoweredStep : LoadedStep {
  Schedule schedule;
};

struct ExplainOptions {
  StepOptions step;
  std::vector<std::string> against;
  std::string json;
  bool memory = false;
};

std::string CriticalKind(const CriticalPiece& piece, const LoweredStep& step) {
  if (piece.on_host) {
    return "host";
  }
  const Task& task = step.schedule.task(piece.task);
  if (task.kind != TaskKind::kCompute) {
    return std::string(TaskKindName(task.kind));
  }
  return std::string(step.workload.graph.target(OpId(step.schedule.work(task.work).subject)));
}

std::vector<CriticalShare> CriticalShares(const Timeline& timeline, const LoweredStep& step) {
  std::map<std::string, CriticalShare> by_kind;
  for (const CriticalPiece& piece : FindStepCriticalPath(timeline, step.schedule)) {
    CriticalShare& share = by_kind[CriticalKind(piece, step)];
    share.time += piece.end - piece.start;
    ++share.pieces;
  }
  std::vector<CriticalShare> shares;
  for (auto& [kind, share] : by_kind) {
    share.what = kind;
    shares.push_back(share);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const CriticalShare& a, const CriticalShare& b) { return a.time > b.time; });
  return shares;
}

Duration ComputeAlone(const Schedule& schedule, const std::vector<WorkCost>& costs) {
  Duration sum;
  for (const Task& task : schedule.tasks()) {
    const bool compute = task.stream == static_cast<std::uint8_t>(StreamRole::kCompute);
    sum += compute ? costs[task.work.index()].device : Duration();
  }
  return sum;
}

std::vector<ChangedTime> TimesWith(const std::vector<Change>& changes,
                                   const LoweredStep& step,
                                   const ClockedCosts& costs) {
  std::vector<ChangedTime> times;
  times.reserve(changes.size());
  for (const Change& change : changes) {
    times.push_back({change.name, StepTimeWith(change, step.schedule, costs, step.cluster)});
  }
  return times;
}

/// The plan with these parameters kept instead of its own.
MemoryValue ValueOf(const LoweredStep& step, const std::vector<bool>& kept, std::size_t changed) {
  Plan plan = step.plan;
  plan.persistent.clear();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) {
      plan.persistent.emplace_back(i);
    }
  }
  const Result result = PredictPlan(plan, step.inputs()).result;
  return {changed, result.peak_reserved, result.step_time};
}

/// What one more GiB of kept parameters saves, and what one less costs (ChooseKept says which).
void AddMemoryValues(const LoweredStep& step, Explanation& explanation) {
  if (step.plan.options.stage != 3) {
    return;
  }
  const SearchProblem problem = MakeProblem(step.inputs(), step.plan.ranks);
  std::vector<bool> kept(step.workload.graph.params.size());
  for (const ParamId id : step.plan.persistent) {
    kept[id.index()] = true;
  }
  std::vector<KeepItem> inside;
  std::vector<KeepItem> outside;
  Bytes inside_bytes;
  for (const KeepItem& item : FindKeepItems(problem, step.plan.options)) {
    (kept[item.param.index()] ? inside : outside).push_back(item);
    inside_bytes += kept[item.param.index()] ? item.bytes : Bytes(0);
  }
  const std::vector<ParamId> more = ChooseKept(outside, Bytes::GiB(1)).params;
  if (!more.empty()) {
    std::vector<bool> with = kept;
    for (const ParamId id : more) {
      with[id.index()] = true;
    }
    explanation.more_memory = ValueOf(step, with, more.size());
  }
  if (inside_bytes > Bytes::GiB(1)) {
    std::vector<bool> without = kept;
    for (const KeepItem& item : inside) {
      without[item.param.index()] = false;
    }
    const std::vector<ParamId> rest = ChooseKept(inside, inside_bytes - Bytes::GiB(1)).params;
    for (const ParamId id : rest) {
      without[id.index()] = true;
    }
    explanation.less_memory = ValueOf(step, without, inside.size() - rest.size());
  }
}

/// The same job with each gather at its use, where tied embeddings defeat list scheduling.
void AddTied(const LoweredStep& step, Explanation& explanation) {
  const auto found = FindTiedGathers(step.plan, step.workload.graph);
  if (!found) {
    return;
  }
  PlanSpec spec;
  spec.options = step.plan.options;
  const Plan plan = Resolve(spec, step.workload.graph, step.plan.ranks);
  const Result result = PredictPlan(plan, step.inputs()).result;
  explanation.tied = TiedValue{*found, result.peak_reserved, result.step_time};
}

/// The same plan with `align_tensors`, where parameters of odd size shift others and it saves a
/// thousandth of the step.
void AddShifted(const LoweredStep& step, Explanation& explanation) {
  const auto found = FindShiftedParams(step.plan, step.workload.graph);
  if (!found) {
    return;
  }
  Plan plan = step.plan;
  plan.options.align_tensors = true;
  const Result result = PredictPlan(plan, step.inputs()).result;
  constexpr std::int64_t kThousand = 1000;
  const Duration saved = explanation.result.step_time - result.step_time;
  if (saved.ns() * kThousand >= explanation.result.step_time.ns()) {
    explanation.shifted = ShiftedValue{*found, result.peak_reserved, result.step_time};
  }
}

/// The plan's and its rivals' times, with the tables as they are and with each error.
void AddChoice(const ExplainOptions& options, const LoweredStep& step, Explanation& explanation) {
  std::vector<Schedule> schedules = {step.schedule};
  std::vector<ClockedCosts> costs;
  costs.push_back(CostsAtClock(schedules.front(), step.inputs()));
  std::deque<LoadedStep> rivals;  // each on the graph that its plan runs
  for (const std::string& path : options.against) {
    StepOptions own = options.step;
    own.plan = path;
    own.overrides.clear();
    own.gpus = step.plan.ranks;
    const LoadedStep& rival = rivals.emplace_back(LoadStep(own));
    schedules.push_back(LowerStep(rival));
    costs.push_back(CostsAtClock(schedules.back(), rival.inputs()));
    explanation.rivals.push_back(path.substr(path.rfind('/') + 1));
  }
  std::vector<Change> changes = TableErrors();
  changes.insert(changes.begin(), Change());
  changes.front().name = "tables as they are";
  for (const Change& change : changes) {
    ChoiceRow row{change.name, {}};
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      row.step_times.push_back(StepTimeWith(change, schedules[i], costs[i], step.cluster));
    }
    explanation.choice.push_back(std::move(row));
  }
}

/// Of a plan that does not run: who was alive when it stopped.
ExitCode ExplainStop(const ExplainOptions& options,
                     const LoweredStep& step,
                     const Prediction& prediction) {
  const Graph& graph = step.workload.graph;
  const Stop& stop = *prediction.stop;
  const LivePeak alive{stop.task, prediction.result.peak_live, stop.alive};
  if (!options.json.empty()) {
    WriteFile(options.json,
              PrintAnswer(PrintStoppedJson(prediction.result, alive, step.schedule, graph)));
  }
  if (options.json != "-") {
    std::string text = PrintResultText(prediction.result, step.cluster);
    if (options.memory && !stop.task.is_none()) {
      const bool failed = prediction.result.outcome == "out_of_memory";
      text += PrintHolders(alive, failed ? "at the request that failed" : "when nothing went on",
                           step.schedule, graph);
    }
    std::cout << text;
  }
  return ExitCode::kAnswerIsNo;
}

ExitCode RunExplain(const ExplainOptions& options) {
  LoadedStep loaded = LoadStep(options.step);
  Schedule whole = LowerStep(loaded);
  const LoweredStep step{std::move(loaded), std::move(whole)};
  CheckOutputs({{"--json", options.json}});
  const Graph& graph = step.workload.graph;
  Prediction prediction = Predict(step.schedule, step.plan, step.inputs(), /*keep_timeline=*/true);
  if (prediction.stop) {
    return ExplainStop(options, step, prediction);
  }
  PredictionInputs inputs = step.inputs();
  inputs.clock_mhz = prediction.result.sm_clock_mhz;
  const ClockedCosts clocked = CostsAtClock(step.schedule, inputs);
  Explanation explanation;
  explanation.result = std::move(prediction.result);
  explanation.compute_alone = ComputeAlone(step.schedule, clocked.costs);
  explanation.exposures = FindExposure(*prediction.timeline, step.schedule);
  explanation.stalls = FindComputeStalls(*prediction.timeline, step.schedule);
  explanation.critical = CriticalShares(*prediction.timeline, step);
  explanation.removed = TimesWith(RemovedCauses(), step, clocked);
  explanation.errors = TimesWith(TableErrors(), step, clocked);
  AddMemoryValues(step, explanation);
  AddTied(step, explanation);
  AddShifted(step, explanation);
  if (!options.against.empty()) {
    AddChoice(options, step, explanation);
  }
  explanation.peak = FindLivePeak(step.schedule);
  if (!options.json.empty()) {
    WriteFile(options.json, PrintAnswer(PrintExplanationJson(explanation, step.schedule, graph)));
  }
  if (options.json != "-") {
    std::cout << PrintExplanation(explanation, step.schedule, graph, options.memory);
  }
  return ExitCode::kDone;
}

}  // namespace

Subcommand ExplainCommand() {
  return {"explain", "Why a step takes its time and memory, and what would change it",
          "  dc-sim explain traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan "
          "configs/plans/zero3.yaml\n"
          "  dc-sim explain traces/qwen3-8b --cluster configs/clusters/h200-8.yaml --plan "
          "best.json \\\n"
          "    --memory --against configs/plans/zero3-ahead.yaml",
          [](CLI::App& app) -> std::function<ExitCode()> {
            const auto options = std::make_shared<ExplainOptions>();
            DeclareStepOptions(app, options->step);
            app.add_flag("--memory", options->memory, "who is alive at the peak of memory");
            app.add_option("--against", options->against,
                           "plan file of a rival: does the plan stay best when the tables are "
                           "wrong? May be repeated")
                ->take_all()
                ->allow_extra_args(false);
            app.add_option("--json", options->json, "write the explanation as JSON; - is stdout");
            return [options] { return RunExplain(*options); };
          }};
}

}  // namespace dcsim
