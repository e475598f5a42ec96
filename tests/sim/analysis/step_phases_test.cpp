#include "sim/analysis/step_phases.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/sim/step_kit.h"

namespace dcsim {
namespace {

TaskId AddOnCompute(StepKit& kit, TaskKind kind, std::int64_t ns, std::vector<TaskId> waits = {}) {
  TaskDraft draft;
  draft.kind = kind;
  draft.stream = StreamRole::kCompute;
  draft.waits = std::move(waits);
  return kit.Add(draft, {ns});
}

/// Times of the phases of the step behind the warm-up.
struct PhaseTimes {
  PhaseTimes(StepKit& kit, const SimulationOptions& options) {
    const Graph graph;
    StepPhases phases(kit.schedule(), graph, options.warmup_steps);
    const std::array<Observer*, 1> observers = {&phases};
    Simulate(kit.schedule(), kit.costs(), options, observers);
    forward = phases.time(StepPhase::kForward);
    backward = phases.time(StepPhase::kBackward);
    optimizer = phases.time(StepPhase::kOptimizer);
  }
  Duration forward;
  Duration backward;
  Duration optimizer;
};

/// Forward at [0, 10), backward at [10, 30), its reduction at [0, 50), which the optimizer at
/// [50, 60) waits for, the updated parameters' gather at [60, 90).
void AddStep(StepKit& kit) {
  AddOnCompute(kit, TaskKind::kCastShard, 10);
  const TaskId reduction = kit.Collective(StreamRole::kReduce, {50});
  AddOnCompute(kit, TaskKind::kSetTangents, 20);
  const TaskId optimizer = AddOnCompute(kit, TaskKind::kOptimizerStep, 10, {reduction});
  kit.Collective(StreamRole::kGather, {30}, 0, {optimizer});
}

TEST(StepPhasesTest, WhatComputeWaitsForCountsToThePhaseBefore) {
  StepKit kit;
  AddStep(kit);
  const PhaseTimes phases(kit, OneStep());
  EXPECT_EQ(phases.forward, Duration::FromNs(10));
  EXPECT_EQ(phases.backward, Duration::FromNs(40));
  EXPECT_EQ(phases.optimizer, Duration::FromNs(40));
}

TEST(StepPhasesTest, OneStepCountsAlone) {
  StepKit kit;
  AddStep(kit);
  SimulationOptions options = Steps(2);
  options.warmup_steps = 1;
  const PhaseTimes phases(kit, options);
  // The second step's forward begins at 60, beside the gather of the first, which ends at 90.
  const Duration all = phases.forward + phases.backward + phases.optimizer;
  RunRecord record = kit.Run(options);
  EXPECT_EQ(all, record.ended[1].time - record.ended[0].time);
}

TEST(StepPhasesTest, MicroStepsAddUp) {
  StepKit kit;
  AddOnCompute(kit, TaskKind::kCastShard, 10);
  AddOnCompute(kit, TaskKind::kSetTangents, 20);
  AddOnCompute(kit, TaskKind::kOptimizerStep, 5);
  AddOnCompute(kit, TaskKind::kAccumulate, 20);
  AddOnCompute(kit, TaskKind::kOptimizerStep, 5);
  const PhaseTimes phases(kit, OneStep());
  EXPECT_EQ(phases.forward, Duration::FromNs(10));
  EXPECT_EQ(phases.backward, Duration::FromNs(40));
  EXPECT_EQ(phases.optimizer, Duration::FromNs(10));
}

}  // namespace
}  // namespace dcsim
