// How many schedules a second a search scores, and where the time goes.

#include <benchmark/benchmark.h>
#include <optional>
#include <string>
#include <vector>

#include "model/cost/work_cost.h"
#include "sim/search/evaluator.h"
#include "sim/search/folded_memory.h"
#include "sim/search/folded_program.h"
#include "sim/search/moves.h"
#include "tests/support/source_folder.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

/// A committed workload under ZeRO-3 on 8 H200s, and schedules that a search of it meets.
struct Fixture {
  Fixture(const std::string& name, Engine gathers)
      : workload(LoadWorkload(SourceFolder() + "/traces/" + name)),
        cluster(LoadCluster(SourceFolder() + "/configs/clusters/h200-8.yaml")),
        profile(FindProfile(workload, cluster.gpu.name)),
        problem(MakeProblem({workload.graph, profile ? &*profile : nullptr, cluster}, 8)) {
    space.options = {ScheduleOptions()};
    space.options.front().gather_engine = gathers;
    const Moves moves(problem, space);
    Random random(1);
    Candidate candidate = moves.Uniform(space.options.front(), 8, 1, {});
    for (int i = 0; i < 4096; ++i) {
      candidate = moves.Mutate(candidate, random);
      walk.push_back(candidate);
    }
  }

  Workload workload;
  Cluster cluster;
  std::optional<Profile> profile;
  SearchProblem problem;
  SearchSpace space;
  std::vector<Candidate> walk;  // each one to three random changes from the one before
};

const Fixture& Qwen() {
  static const Fixture fixture("qwen3-8b", Engine::kNccl);
  return fixture;
}

/// The same with gathers by copy engines, priced by the ring: this cluster has no table of them.
const Fixture& QwenCopies() {
  static const Fixture fixture("qwen3-8b", Engine::kCopyEngine);
  return fixture;
}

const Candidate& Nth(const Fixture& fixture, std::size_t i) {
  return fixture.walk[i % fixture.walk.size()];
}

/// Everything that a score takes, hashing and memory of scores included; range: threads.
void EvaluateAll(benchmark::State& state, const Fixture& fixture) {
  std::int64_t schedules = 0;
  for (auto _ : state) {
    Evaluator evaluator(fixture.problem, {static_cast<unsigned>(state.range(0)), std::nullopt});
    benchmark::DoNotOptimize(evaluator.Evaluate(fixture.walk));
    schedules += static_cast<std::int64_t>(evaluator.evaluated());
  }
  state.counters["schedules/s"] =
      benchmark::Counter(static_cast<double>(schedules), benchmark::Counter::kIsRate);
}

void Evaluate(benchmark::State& state) {
  EvaluateAll(state, Qwen());
}
BENCHMARK(Evaluate)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void EvaluateCopies(benchmark::State& state) {
  EvaluateAll(state, QwenCopies());
}
BENCHMARK(EvaluateCopies)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void EvaluateAllPlainly(benchmark::State& state, const Fixture& fixture) {
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        EvaluatePlainly(fixture.problem, Nth(fixture, i++), TensorMemory(fixture.problem, {})));
  }
}

void Plainly(benchmark::State& state) {
  EvaluateAllPlainly(state, Qwen());
}
BENCHMARK(Plainly)->Unit(benchmark::kMicrosecond);

void PlainlyCopies(benchmark::State& state) {
  EvaluateAllPlainly(state, QwenCopies());
}
BENCHMARK(PlainlyCopies)->Unit(benchmark::kMicrosecond);

// The parts of the plain way.
void PlainLower(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        LowerFor(PlanOf(Qwen().problem, Nth(Qwen(), 0)), Qwen().problem.inputs));
  }
}
BENCHMARK(PlainLower)->Unit(benchmark::kMicrosecond);

void PlainEstimate(benchmark::State& state) {
  const PredictionInputs& inputs = Qwen().problem.inputs;
  const Schedule schedule = LowerFor(PlanOf(Qwen().problem, Nth(Qwen(), 0)), inputs);
  for (auto _ : state) {
    benchmark::DoNotOptimize(EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster));
  }
}
BENCHMARK(PlainEstimate)->Unit(benchmark::kMicrosecond);

void PlainSimulate(benchmark::State& state) {
  const PredictionInputs& inputs = Qwen().problem.inputs;
  const Schedule schedule = LowerFor(PlanOf(Qwen().problem, Nth(Qwen(), 0)), inputs);
  const auto costs = EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster);
  const SimulationOptions options = OptionsFor(schedule, inputs.cluster);
  for (auto _ : state) {
    benchmark::DoNotOptimize(Simulate(schedule, costs, options, {}));
  }
}
BENCHMARK(PlainSimulate)->Unit(benchmark::kMicrosecond);

// The parts of the folded way.
void FoldedTime(benchmark::State& state) {
  const auto program = FindFoldedProgram(Qwen().problem, ScheduleOptions(), 0);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(FindFoldedStepTime(Qwen().problem, *program, Nth(Qwen(), i++)));
  }
}
BENCHMARK(FoldedTime)->Unit(benchmark::kMicrosecond);

void FoldedPeaks(benchmark::State& state) {
  const auto memory = FindFoldedMemory(Qwen().problem, ScheduleOptions(), 0);
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(FindFoldedPeaks(*memory, Nth(Qwen(), i++)));
  }
}
BENCHMARK(FoldedPeaks)->Unit(benchmark::kMicrosecond);

void FoldFrame(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(FindFoldedProgram(Qwen().problem, ScheduleOptions(), 0));
    benchmark::DoNotOptimize(FindFoldedMemory(Qwen().problem, ScheduleOptions(), 0));
  }
}
BENCHMARK(FoldFrame)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace dcsim

BENCHMARK_MAIN();
