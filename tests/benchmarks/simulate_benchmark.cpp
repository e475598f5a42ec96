#include <algorithm>
#include <benchmark/benchmark.h>
#include <map>

#include "model/passes/resolve.h"
#include "sim/analysis/predict.h"
#include "sim/analysis/step_metrics.h"
#include "sim/engine/step_program.h"
#include "tests/support/source_folder.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

const Workload& Qwen() {
  static const Workload workload = LoadWorkload(SourceFolder() + "/traces/qwen3-8b");
  return workload;
}

const Cluster& H200() {
  static const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/h200-8.yaml");
  return cluster;
}

/// ZeRO-3 on 8 GPUs with so many micro-steps that the step has about `tasks` tasks.
Schedule QwenSchedule(std::int64_t tasks) {
  constexpr std::int64_t kTasksOfAMicroStep = 13'500;
  PlanSpec spec;
  spec.gather_ahead = 8;
  spec.options.gradient_accumulation_steps =
      static_cast<int>(std::max<std::int64_t>(1, tasks / kTasksOfAMicroStep));
  const PredictionInputs inputs{Qwen().graph, nullptr, H200()};
  return LowerFor(Resolve(spec, Qwen().graph, 8), inputs);
}

/// One step without warm-up, allocator replay and step metrics on, no timeline.
void SimulateQwen(benchmark::State& state) {
  const Schedule schedule = QwenSchedule(state.range(0));
  const auto costs = EstimateWorks(schedule, Qwen().graph, nullptr, H200());
  SimulationOptions options = OptionsFor(schedule, H200());
  options.warmup_steps = 0;
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    StepMetrics metrics(schedule, costs, options.warmup_steps);
    const std::array<Observer*, 1> observers = {&metrics};
    const Simulation simulation = Simulate(schedule, costs, options, observers);
    tasks += simulation.tasks_executed;
    benchmark::DoNotOptimize(simulation.step_ends.data());
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
  state.counters["tasks"] = static_cast<double>(schedule.task_count());
  state.counters["bytes/task"] =
      schedule.bytes_per_task() + StepProgram(schedule, costs).bytes_per_task();
}
BENCHMARK(SimulateQwen)
    ->RangeMultiplier(10)
    ->Range(10'000, 10'000'000)
    ->Unit(benchmark::kMillisecond);

void LowerQwen(benchmark::State& state) {
  for (auto _ : state) {
    const Schedule schedule = QwenSchedule(10'000);
    benchmark::DoNotOptimize(schedule.task_count());
  }
}
BENCHMARK(LowerQwen)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dcsim

BENCHMARK_MAIN();
