// What must hold in every run: on 250 seeded random graphs under random plans, all options
// included, on a GPU on which tasks leave each other alone and on one on which they do not.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/cost/work_cost.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "sim/analysis/critical_path.h"
#include "sim/analysis/predict.h"
#include "sim/analysis/step_metrics.h"
#include "sim/analysis/timeline_recorder.h"
#include "tests/sim/random_step.h"
#include "tests/sim/reference_times.h"
#include "tests/sim/step_kit.h"
#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

constexpr std::uint64_t kSeeds = 250;

/// A random step, lowered and priced; every third one has a profile.
struct PricedStep {
  PricedStep(std::uint64_t seed, const Cluster& of)
      : step(MakeRandomStep(seed)),
        cluster(of),
        profile(seed % 3 == 0 ? &step.profile : nullptr),
        schedule(LowerFor(step.plan, inputs())),
        costs(EstimateWorks(schedule, step.graph, profile, cluster)) {}

  PredictionInputs inputs() const { return {step.graph, profile, cluster}; }

  /// Room for everything; waits and driver calls are free, so that only the order of tasks counts.
  SimulationOptions options(std::uint32_t steps) const {
    SimulationOptions free = OptionsFor(schedule, cluster);
    free.warmup_steps = 0;
    free.measured_steps = steps;
    free.synchronize = Duration();
    free.segment = Duration();
    return free;
  }

  RunRecord Run(std::uint32_t steps) const { return Record(schedule, costs, options(steps)); }

  RandomStep step;
  Cluster cluster;
  const Profile* profile;
  Schedule schedule;
  std::vector<WorkCost> costs;
};

/// Calls `check` with each seed's step on `cluster(seed)`; stops at the first seed that fails.
template <typename ClusterOf, typename Check>
void ForEachSeedOn(ClusterOf cluster, Check check) {
  for (std::uint64_t seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(PricedStep(seed, cluster(seed)));
  }
}

/// Where nothing disturbs anything, so that times can be told beforehand.
template <typename Check>
void ForEachFreeSeed(Check check) {
  ForEachSeedOn([](std::uint64_t) { return HandCluster(); }, check);
}

/// There, and with contention.
template <typename Check>
void ForEachSeed(Check check) {
  ForEachFreeSeed(check);
  SCOPED_TRACE("with contention");
  ForEachSeedOn(CrowdedCluster, check);
}

TEST(SimulatePropertyTest, RandomPlansAreValid) {
  ForEachFreeSeed([](const PricedStep& priced) {
    EXPECT_EQ(FindPlanFaults(priced.step.plan, priced.step.graph), std::vector<std::string>());
  });
}

TEST(SimulatePropertyTest, LoweredSchedulesBreakNoRule) {
  ForEachSeed([](const PricedStep& priced) {
    for (const Violation& violation : Verify(priced.schedule, priced.step.graph)) {
      ADD_FAILURE() << RuleName(violation.rule) << ": " << violation.message;
    }
  });
}

// Every task of three steps, against the recurrence that a schedule means.
TEST(SimulatePropertyTest, EveryTaskRunsWhenTheRecurrenceSays) {
  ForEachFreeSeed([](const PricedStep& priced) {
    const RunRecord run = priced.Run(3);
    ASSERT_EQ(run.result.outcome, Outcome::kCompleted);
    const auto expected = ReferenceTimes(priced.schedule, priced.costs, 3);
    for (const TaskSpan& span : run.spans) {
      const Interval found{span.start.ns(), span.end.ns()};
      ASSERT_EQ(found, expected[span.step][span.task.index()]) << "task " << span.task.index();
    }
  });
}

// Orders are fixed, so one step takes exactly its longest chain of tasks.
TEST(SimulatePropertyTest, StepTakesItsCriticalPath) {
  ForEachFreeSeed([](const PricedStep& priced) {
    const StepGraph graph = GraphOfStep(priced.schedule, priced.costs);
    const Duration longest = FindCriticalPath(graph.edges, graph.times).length;
    EXPECT_EQ(priced.Run(1).result.step_ends.front() - SimTime(), longest);
  });
}

// With waits and driver calls at their price it can only take longer.
TEST(SimulatePropertyTest, StepTakesAtLeastItsCriticalPath) {
  ForEachSeed([](const PricedStep& priced) {
    const StepGraph graph = GraphOfStep(priced.schedule, priced.costs);
    SimulationOptions options = OptionsFor(priced.schedule, priced.cluster);
    options.warmup_steps = 0;
    const Simulation result = Record(priced.schedule, priced.costs, options).result;
    EXPECT_GE(result.step_ends.front() - SimTime(),
              FindCriticalPath(graph.edges, graph.times).length);
  });
}

TEST(SimulatePropertyTest, StepTakesAtLeastItsBusiestStream) {
  ForEachSeed([](const PricedStep& priced) {
    std::array<Duration, kStreamCount> busy{};
    for (const Task& task : priced.schedule.tasks()) {
      if (!task.on_host()) {
        busy[task.stream] += priced.costs[task.work.index()].device;
      }
    }
    const Duration step = priced.Run(1).result.step_ends.front() - SimTime();
    EXPECT_GE(step, *std::max_element(busy.begin(), busy.end()));
  });
}

TEST(SimulatePropertyTest, NoTaskTakesLessThanAlone) {
  ForEachSeed([](const PricedStep& priced) {
    for (const TaskSpan& span : priced.Run(2).spans) {
      const Task& task = priced.schedule.tasks()[span.task.index()];
      ASSERT_GE(span.end - span.start, priced.costs[task.work.index()].device)
          << "task " << span.task.index();
    }
  });
}

/// Spans of one key must follow each other.
template <typename Key>
void ExpectDisjoint(const std::vector<TaskSpan>& spans, Key key) {
  std::map<int, SimTime> ends;
  std::vector<TaskSpan> sorted = spans;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const TaskSpan& a, const TaskSpan& b) { return a.start < b.start; });
  for (const TaskSpan& span : sorted) {
    const std::optional<int> own = key(span);
    if (!own || span.start == span.end) {
      continue;
    }
    ASSERT_GE(span.start, ends[*own]) << "task " << span.task.index();
    ends[*own] = span.end;
  }
}

TEST(SimulatePropertyTest, TasksOfAStreamNeverOverlap) {
  ForEachSeed([](const PricedStep& priced) {
    ExpectDisjoint(priced.Run(2).spans,
                   [](const TaskSpan& span) { return std::optional<int>(span.stream); });
  });
}

TEST(SimulatePropertyTest, CollectivesOfACommunicatorNeverOverlap) {
  ForEachSeed([](const PricedStep& priced) {
    ExpectDisjoint(priced.Run(2).spans, [&](const TaskSpan& span) {
      const Collective* collective = priced.schedule.FindCollective(span.task);
      return collective == nullptr || collective->engine != Engine::kNccl
                 ? std::nullopt
                 : std::optional<int>(collective->communicator);
    });
  });
}

/// Bytes that a step leaves behind: residents, and what the caller holds until the next one.
Bytes ExpectedAfterStep(const Schedule& schedule) {
  Bytes bytes;
  for (const BufferId id : schedule.residents()) {
    bytes += schedule.buffer(id).bytes;
  }
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    for (const MemoryStep& step : schedule.memory(TaskId(i))) {
      const Buffer& buffer = schedule.buffer(step.buffer);
      bytes += buffer.carried && !step.frees ? buffer.bytes : Bytes(0);
    }
  }
  return bytes;
}

TEST(SimulatePropertyTest, EveryStepLeavesResidentsAndHeldOutputs) {
  ForEachSeed([](const PricedStep& priced) {
    const RunRecord run = priced.Run(3);
    std::array<Bytes, 3> left{};
    for (const MemoryRecord& record : run.memory) {
      left[record.step] = record.live;  // the last one of each step stays
    }
    for (const Bytes bytes : left) {
      EXPECT_EQ(bytes, ExpectedAfterStep(priced.schedule));
    }
    EXPECT_EQ(run.result.live_after_step, left.back());
  });
}

TEST(SimulatePropertyTest, LiveBytesNeverFallBelowTheResidents) {
  ForEachSeed([](const PricedStep& priced) {
    const RunRecord run = priced.Run(2);
    const Bytes residents = run.memory.front().live;
    for (const MemoryRecord& record : run.memory) {
      ASSERT_GE(record.live, residents) << "task " << record.task.index();
    }
  });
}

TEST(SimulatePropertyTest, PeaksAreOrdered) {
  ForEachSeed([](const PricedStep& priced) {
    const Simulation result = priced.Run(2).result;
    EXPECT_LE(result.peak_live, result.memory.allocated.peak);
    EXPECT_LE(result.memory.allocated.peak, result.memory.active.peak);
    EXPECT_LE(result.memory.active.peak, result.memory.reserved.peak);
  });
}

// With half of what a free run reserves, a run completes with retries or stops; it never takes
// more.
TEST(SimulatePropertyTest, ReservedStaysWithinTheCapacity) {
  ForEachSeed([](const PricedStep& priced) {
    SimulationOptions options = priced.options(2);
    const Bytes free_peak = priced.Run(2).result.memory.reserved.peak;
    options.allocator.capacity = Bytes(std::max<std::int64_t>(1, free_peak.count() / 2));
    const Simulation result = Record(priced.schedule, priced.costs, options).result;
    EXPECT_NE(result.outcome, Outcome::kDeadlock);
    EXPECT_LE(result.memory.reserved.peak, options.allocator.capacity);
  });
}

// Host order decides about memory, not the clock: with event-ordered releases the times of tasks do
// not matter.
TEST(SimulatePropertyTest, EventOrderedPeaksDoNotDependOnTimes) {
  ForEachSeed([](const PricedStep& priced) {
    if (priced.step.plan.options.release != ReleaseMode::kEventOrdered) {
      return;
    }
    std::vector<WorkCost> slow = priced.costs;
    for (std::size_t i = 0; i < slow.size(); ++i) {
      slow[i].device = slow[i].device * static_cast<std::int64_t>(1 + i % 7);
    }
    const Simulation other = Record(priced.schedule, slow, priced.options(2)).result;
    EXPECT_EQ(other.memory.reserved.peak, priced.Run(2).result.memory.reserved.peak);
  });
}

/// Checks that no call tells of an earlier time than the one before.
class ClockObserver : public Observer {
 public:
  void OnStepIssued(const StepEvent& event) override { Advance(event.time); }
  void OnStepEnded(const StepEvent& event) override { Advance(event.time); }
  void OnTaskStarted(const TaskEvent& event) override { Advance(event.time); }
  void OnTaskEnded(const TaskSpan& span) override { Advance(span.end); }
  void OnHost(const HostSpan& span) override { Advance(span.end); }
  void OnMemory(const MemoryEvent& event) override { Advance(event.time); }

  bool went_back() const { return went_back_; }

 private:
  void Advance(SimTime time) {
    went_back_ = went_back_ || time < now_;
    now_ = time;
  }

  SimTime now_;
  bool went_back_ = false;
};

TEST(SimulatePropertyTest, ObserversHearEventsInOrderOfTime) {
  ForEachSeed([](const PricedStep& priced) {
    ClockObserver clock;
    const std::array<Observer*, 1> observers = {&clock};
    Simulate(priced.schedule, priced.costs, priced.options(2), observers);
    EXPECT_FALSE(clock.went_back());
  });
}

// What makes the slow rank's own step the step of all: no collective would start later on a rank
// that is not slow, so none makes the slow one wait.
TEST(SimulatePropertyTest, StragglerIsLastAtEveryCollective) {
  ForEachSeed([](const PricedStep& priced) {
    Cluster slow = priced.cluster;
    slow.straggler = 1.3;
    const auto costs = EstimateWorks(priced.schedule, priced.step.graph, priced.profile, slow);
    const RunRecord own = Record(priced.schedule, costs, priced.options(3));
    const RunRecord others = priced.Run(3);
    for (const TaskSpan& span : others.spans) {
      if (priced.schedule.FindCollective(span.task) != nullptr) {
        ASSERT_LE(span.start, own.span(span.task, span.step).start) << span.task.index();
      }
    }
  });
}

TEST(SimulatePropertyTest, ObserversChangeNothing) {
  ForEachSeed([](const PricedStep& priced) {
    const Simulation alone = Simulate(priced.schedule, priced.costs, priced.options(2), {});
    EXPECT_EQ(alone.step_ends, priced.Run(2).result.step_ends);
  });
}

TEST(SimulatePropertyTest, PeakClassesAddUpToThePeak) {
  ForEachSeed([](const PricedStep& priced) {
    SimulationOptions options = priced.options(1);
    options.warmup_steps = 2;
    PeakClasses classes(priced.schedule, options.warmup_steps);
    const std::array<Observer*, 1> observers = {&classes};
    const Simulation result = Simulate(priced.schedule, priced.costs, options, observers);
    Bytes sum;
    for (const ClassBytes& each : classes.classes()) {
      sum += each.bytes;
    }
    EXPECT_EQ(sum, result.peak_live);
  });
}

// At the clusters's prices for waits and driver calls too.
TEST(SimulatePropertyTest, CriticalPathTilesTheStep) {
  ForEachSeed([](const PricedStep& priced) {
    const SimulationOptions options = OptionsFor(priced.schedule, priced.cluster);
    TimelineRecorder recorder(options.warmup_steps);
    const std::array<Observer*, 1> observers = {&recorder};
    Simulate(priced.schedule, priced.costs, options, observers);
    const Timeline timeline = recorder.timeline();
    SimTime reached;
    for (const CriticalPiece& piece : FindStepCriticalPath(timeline, priced.schedule)) {
      ASSERT_EQ(piece.start, reached) << "before task " << piece.task.index();
      reached = piece.end;
    }
    EXPECT_EQ(reached - SimTime(), timeline.step_time);
  });
}

TEST(SimulatePropertyTest, SameInputGivesTheSameBytes) {
  ForEachSeed([](const PricedStep& priced) {
    const auto print = [&priced] {
      const Schedule schedule = LowerFor(priced.step.plan, priced.inputs());
      const Prediction prediction = Predict(schedule, priced.step.plan, priced.inputs(), false);
      return PrintResult(prediction.result).dump();
    };
    EXPECT_EQ(print(), print());
  });
}

TEST(SimulatePropertyTest, ExposedCommunicationFitsInTheStep) {
  ForEachSeed([](const PricedStep& priced) {
    const Result result = Predict(priced.schedule, priced.step.plan, priced.inputs(), false).result;
    EXPECT_LE(result.exposed_communication + result.compute, result.step_time);
  });
}

}  // namespace
}  // namespace dcsim
