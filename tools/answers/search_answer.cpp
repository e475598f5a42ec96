#include "tools/answers/search_answer.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "model/base/error.h"
#include "model/base/quantity.h"
#include "model/passes/resolve.h"
#include "sim/analysis/step_clock.h"
#include "sim/search/parallel.h"
#include "sim/search/useful_options.h"
#include "tools/answers/search_starts.h"
#include "tools/common/compiled_form.h"
#include "tools/common/deepspeed_launches.h"
#include "tools/common/file.h"
#include "tools/common/load.h"
#include "tools/common/step_options.h"

namespace dcsim {
namespace {

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

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

SearchSettings SettingsOf(const SearchQuestion& question,
                          std::vector<Candidate> starts,
                          const SearchProblem& problem,
                          const SearchWatch& watch) {
  const auto start = std::chrono::steady_clock::now();
  SearchSettings settings;
  settings.method = question.exhaustive ? SearchMethod::kExhaustive : SearchMethod::kDefault;
  settings.seed = question.seed;
  settings.budget = question.schedules;
  settings.starts = std::move(starts);
  settings.should_stop = [&watch, start, limit = question.time] {
    return watch.should_stop() || (limit > 0 && SecondsSince(start) > limit);
  };
  settings.on_progress = [&watch, &problem](const SearchProgress& progress) {
    if (watch.on_progress) {
      watch.on_progress(progress, problem);
    }
  };
  return settings;
}

/// Says why gathers by copy engines were left out.
void NoteCopies(const SearchQuestion& question, const LoadedSearch& loaded, std::ostream& notes) {
  if (loaded.lacks_copies) {
    notes << "search: gathers by copy engines were left out: "
          << (loaded.cluster.NodesOf(loaded.ranks) > 1
                  ? "they reach the GPUs of one node alone"
                  : (question.cluster.starts_with('{') ? "cluster" : question.cluster) +
                        " has no copy_engines (dc-run calibrate measures them)")
          << "\n";
  }
}

/// A workload as FSDP2's users compile it, each layer on its own, where that is recorded.
std::optional<ProfiledWorkload> FindLayers(const ProfiledWorkload& recorded, std::ostream& notes) {
  const AskedForm form{.backend = Backend::kInductor, .layers = true};
  if (!FileExists(FormFile(recorded.workload.folder, form.stage, form.layers))) {
    return std::nullopt;
  }
  return TakeForm(recorded, form, notes);
}

SearchReport ReportSearch(const LoadedSearch& loaded,
                          const SearchProblem& problem,
                          SearchResult found,
                          Bytes limit,
                          std::ostream& notes) {
  SearchReport report;
  report.workload = loaded.workload.graph.name;
  report.gpu = loaded.cluster.gpu.name;
  report.ranks = problem.ranks;
  report.limit = limit;
  report.search = std::move(found);
  report.front = ReportFront(loaded, problem, report.search.front, limit);
  AddBaselines(loaded, problem, report, notes);
  if (!report.front.empty()) {
    AddDeepSpeed(loaded, report);
    report.expandable_reserved = ReservedIfExpandable(loaded, report.front.front().plan);
  } else if (report.search.least) {
    report.expandable_reserved =
        ReservedIfExpandable(loaded, PlanOf(problem, report.search.least->candidate));
  }
  return report;
}

}  // namespace

LoadedSearch LoadSearch(const SearchQuestion& question, std::ostream& notes) {
  Workload recorded = LoadWorkload(question.workload, question.sizes, notes);
  Cluster cluster = LoadChangedCluster(question.cluster, question.cluster_overrides);
  const int ranks = RanksFor(question.gpus, cluster);
  SearchSpace space = question.space.empty()
                          ? ReadSearchSpace(DefaultSearchSpace(), PointerLocator("default space"))
                          : LoadSpace(question.space);
  if (!question.memory_limit.empty()) {
    space.memory_limit = ParseMemoryLimit(question.memory_limit);
  }
  std::vector<std::string> plans = question.starts;
  plans.insert(plans.begin(), question.baseline);
  const AskedForm form = SearchForm(question.backend, plans, space,
                                    DeepSpeedJobOf(recorded.graph, ranks, BatchSizes::kFile));
  ProfiledWorkload as_recorded = WithProfile(std::move(recorded), cluster.gpu.name, question.times);
  ProfiledWorkload taken = TakeForm(as_recorded, form, notes);
  Workload& workload = taken.workload;
  std::optional<Profile>& profile = taken.profile;
  std::optional<Graph> operators;
  std::optional<ProfiledWorkload> layers;
  if (workload.graph.compiled) {
    if (SearchCompiled(workload.graph, space)) {
      notes << "search: over ZeRO-3; stages 1 and 2 have another compiled graph, which a space "
               "of these stages searches\n";
    }
    if (question.baseline.empty()) {
      layers = FindLayers(as_recorded, notes);
    }
    operators = std::move(as_recorded.workload.graph);
  }
  const bool lacks_copies = LeaveOutUnmeasuredCopies(cluster, ranks, space);
  LoadedSearch loaded{std::move(workload),
                      std::move(operators),
                      std::move(layers),
                      std::move(cluster),
                      std::move(profile),
                      std::move(space),
                      ranks,
                      std::nullopt,
                      lacks_copies};
  if (!question.baseline.empty()) {
    loaded.baseline =
        LoadPlan(question.baseline, {}, loaded.inputs(), loaded.ranks, {BatchSizes::kFile, &notes});
    NoteRecomputation(question.workload, loaded.workload.graph, *loaded.baseline, notes);
    TakeTraining(loaded.baseline->options, loaded.space);
  }
  if (question.for_deepspeed) {
    RequireDeepSpeedSpace(loaded.space, loaded.workload.graph, question.space);
  }
  return loaded;
}

double SearchAnswer::schedules_per_second() const {
  return static_cast<double>(report.search.evaluated) / std::max(1e-9, seconds);
}

SearchAnswer AnswerSearch(const SearchQuestion& question,
                          const LoadedSearch& loaded,
                          const SearchWatch& watch,
                          std::ostream& notes) {
  PredictionInputs at_clock = loaded.inputs();
  at_clock.clock_mhz = SearchClock(loaded);
  SearchProblem problem = MakeProblem(at_clock, loaded.ranks);
  std::vector<Candidate> starts =
      SearchStarts(loaded, question.starts, question.for_deepspeed, problem, notes);
  Evaluator evaluator(problem, {ThreadsFor(question.threads), loaded.space.memory_limit});
  const auto start = std::chrono::steady_clock::now();
  SearchResult found =
      Search(evaluator, loaded.space, SettingsOf(question, std::move(starts), problem, watch));
  const double seconds = SecondsSince(start);
  NoteCopies(question, loaded, notes);
  return {ReportSearch(loaded, problem, std::move(found), evaluator.memory_limit(), notes),
          question.seed, seconds};
}

Json PrintSearchAnswer(const SearchAnswer& answer, const Graph& graph) {
  Json document = PrintSearch(answer.report, graph);
  document["seed"] = answer.seed;
  document["seconds"] = answer.seconds;
  document["schedules_per_second"] = answer.schedules_per_second();
  return document;
}

}  // namespace dcsim
