#include "tools/answers/search_report.h"

#include <algorithm>
#include <iterator>

#include "model/base/error.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "sim/analysis/exposure.h"
#include "sim/analysis/most_reserved.h"
#include "sim/analysis/step_clock.h"
#include "tools/common/deepspeed_config.h"
#include "tools/common/step_options.h"

namespace dcsim {
namespace {

/// Members of the front for the report: all of a short one; of a long one the ends and, between
/// them, those nearest to equal steps of memory.
std::vector<Scored> Shown(const std::vector<Scored>& front) {
  constexpr std::size_t kMost = 16;
  if (front.size() <= kMost) {
    return front;
  }
  std::vector<Scored> shown;
  const std::int64_t most = front.front().score.peak_reserved.count();
  const std::int64_t least = front.back().score.peak_reserved.count();
  std::size_t next = 0;
  for (std::size_t i = 0; i < kMost; ++i) {
    const std::int64_t at =
        most - (most - least) / static_cast<std::int64_t>(kMost - 1) * static_cast<std::int64_t>(i);
    while (next + 1 < front.size() && front[next].score.peak_reserved.count() > at) {
      ++next;
    }
    const std::size_t chosen = i + 1 == kMost ? front.size() - 1 : next;
    if (shown.empty() || !(shown.back().score == front[chosen].score)) {
      shown.push_back(front[chosen]);
    }
  }
  return shown;
}

/// What a plan may reserve at most, at the clock that its own step leaves.
Bytes MostReservedBy(const Plan& plan, const PredictionInputs& inputs) {
  const Schedule schedule = LowerFor(plan, inputs);
  const ClockedCosts clocked = CostsAtClock(schedule, inputs);
  PredictionInputs at_clock = inputs;
  at_clock.clock_mhz = clocked.clock_mhz;
  return MostReservedBy(schedule, clocked.costs, at_clock);
}

/// Whether a schedule stays below the limit even if it reserves the most that it may
/// (MostReservedBy); far below it that needs no proof.
bool FitsAtMost(const SearchProblem& problem, const Scored& scored, Bytes limit) {
  constexpr std::int64_t kNear = 20;  // a 20th of the limit
  return scored.score.peak_reserved < limit - Bytes(limit.count() / kNear) ||
         MostReservedBy(PlanOf(problem, scored.candidate), problem.inputs) <= limit;
}

/// A policy's own plan of a stage for `inputs`, trained as the space says.
Plan PlanOfPolicy(const LoadedSearch& loaded,
                  std::string_view policy,
                  int stage,
                  const PredictionInputs& inputs) {
  const ScheduleOptions& training = loaded.space.options.front();
  Json spec = {{"format", "dc-plan-spec/1"},
               {"policy", policy},
               {"stage", stage},
               {"gradient_accumulation_steps", training.gradient_accumulation_steps}};
  if (training.gradient_clipping) {
    spec["gradient_clipping"] = *training.gradient_clipping;
  }
  return PlanOfDocument(spec, "plan of " + std::string(policy), inputs, loaded.ranks);
}

/// FSDP2 with layers compiled beside compiled graphs, and with eager ones beside operators; nothing
/// where its layers are not recorded.
void AddFsdp(const LoadedSearch& loaded, SearchReport& report, std::ostream& notes) {
  if (loaded.workload.graph.compiled && !loaded.layers) {
    return;
  }
  const PredictionInputs inputs =
      loaded.layers ? PredictionInputs{loaded.layers->workload.graph,
                                       loaded.layers->profile ? &*loaded.layers->profile : nullptr,
                                       loaded.cluster}
                    : loaded.inputs();
  try {
    report.baselines.push_back(
        {"fsdp", ReportPlan(inputs, PlanOfPolicy(loaded, "fsdp", 3, inputs))});
  } catch (const Error& error) {
    notes << "search: not compared with FSDP2: " << error.what() << "\n";
  }
}

}  // namespace

std::string_view NewestDeepCompile() {
  const auto policies = PolicyNames();
  return *std::find_if(policies.rbegin(), policies.rend(),
                       [](std::string_view name) { return name.starts_with("deepcompile-"); });
}

Plan DeepSpeedPlan(const LoadedSearch& loaded, std::string_view policy, int stage) {
  return PlanOfPolicy(loaded, policy, stage, loaded.inputs());
}

ReportedPlan ReportPlan(const PredictionInputs& inputs, Plan plan) {
  const Schedule schedule = LowerFor(plan, inputs);
  RequireCorrect(schedule, inputs.graph);
  Prediction prediction = Predict(schedule, plan, inputs, /*keep_timeline=*/true);
  std::vector<Duration> exposed(CollectiveKindNames().size());
  if (prediction.timeline && !prediction.stop) {
    exposed = ExposedByKind(FindExposure(*prediction.timeline, schedule), schedule);
  }
  return {std::move(plan), std::move(prediction.result), std::move(exposed)};
}

std::vector<ReportedPlan> ReportFront(const LoadedSearch& loaded,
                                      const SearchProblem& problem,
                                      const std::vector<Scored>& front,
                                      Bytes limit) {
  std::vector<ReportedPlan> reported;
  std::vector<Scored> sure;
  std::copy_if(front.begin(), front.end(), std::back_inserter(sure),
               [&](const Scored& scored) { return FitsAtMost(problem, scored, limit); });
  for (const Scored& scored : Shown(sure)) {
    const Score simulated = EvaluatePlainly(problem, scored.candidate, limit);
    DCSIM_CHECK(simulated == scored.score)
        << "the score of a schedule, " << FormatDuration(scored.score.step_time) << " and "
        << FormatBytes(scored.score.peak_reserved) << ", differs from its simulation, "
        << FormatDuration(simulated.step_time) << " and " << FormatBytes(simulated.peak_reserved);
    reported.push_back(ReportPlan(loaded.inputs(), PlanOf(problem, scored.candidate)));
  }
  std::stable_sort(reported.begin(), reported.end(),
                   [](const ReportedPlan& a, const ReportedPlan& b) {
                     return a.result.step_time < b.result.step_time;
                   });
  std::vector<ReportedPlan> kept;
  for (ReportedPlan& each : reported) {
    if (kept.empty() || each.result.peak_reserved < kept.back().result.peak_reserved) {
      kept.push_back(std::move(each));
    }
  }
  return kept;
}

std::optional<Bytes> ReservedIfExpandable(const LoadedSearch& loaded, Plan plan) {
  if (plan.options.allocator == AllocatorMode::kExpandableSegments) {
    return std::nullopt;
  }
  plan.options.allocator = AllocatorMode::kExpandableSegments;
  return MostReservedBy(plan, loaded.inputs());
}

void AddBaselines(const LoadedSearch& loaded,
                  const SearchProblem& problem,
                  SearchReport& report,
                  std::ostream& notes) {
  if (loaded.baseline) {
    report.baselines.push_back({"baseline", ReportPlan(loaded.inputs(), *loaded.baseline)});
    return;
  }
  int stage = loaded.space.options.front().stage;
  if (!report.front.empty()) {
    stage = report.front.front().plan.options.stage;
  } else if (report.search.least) {
    stage = PlanOf(problem, report.search.least->candidate).options.stage;
  }
  std::vector<std::string_view> policies = {NewestDeepCompile()};
  if (!loaded.workload.graph.compiled) {
    policies.emplace_back("deepspeed-eager");
  }
  for (const std::string_view policy : policies) {
    report.baselines.push_back(
        {std::string(policy), ReportPlan(loaded.inputs(), DeepSpeedPlan(loaded, policy, stage))});
  }
  AddFsdp(loaded, report, notes);
  for (const Baseline& each : report.baselines) {
    NoteRecomputation(loaded.workload.folder, loaded.workload.graph, each.reported.plan, notes);
  }
}

void AddDeepSpeed(const LoadedSearch& loaded, SearchReport& report) {
  report.deepspeed = ClosestDeepSpeedConfig(report.front.front().plan, loaded.workload.graph);
  const Plan plan = PlanOfDocument(report.deepspeed.config, "closest DeepSpeed configuration",
                                   loaded.inputs(), report.ranks);
  report.deepspeed_result = PredictPlan(plan, loaded.inputs()).result;
  report.deepspeed_policy = plan.policy;
}

}  // namespace dcsim
