// Optimizer states that leave the GPU: what plans may say, what it is lowered to, and that every
// event of it is needed.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/plan_reader.h"
#include "model/ir/task_label.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "tests/model/passes/needed_events.h"
#include "tests/support/error_text.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

constexpr OptimizerState kFirst{DType::kBFloat16, OptimizerTensor::kFirstMoment};
constexpr OptimizerState kSecond{DType::kBFloat16, OptimizerTensor::kSecondMoment};
constexpr OptimizerState kMaster{DType::kBFloat16, OptimizerTensor::kMaster};

PlanSpec OffloadSpec(int stage, Bytes bytes) {
  PlanSpec spec = TinySpec(stage);
  spec.offload_optimizer.bytes = bytes;
  return spec;
}

/// TwoLayers with moves of the test's choice; positions 0 to 3 in the forward, 0 to 4 in the
/// backward, and one behind each graph.
Plan PlanWith(int stage, std::vector<StateMove> forward, std::vector<StateMove> backward) {
  Plan plan = Resolve(TinySpec(stage), TwoLayers(), 2);
  plan.graphs[0].state_moves = std::move(forward);
  plan.graphs[1].state_moves = std::move(backward);
  return plan;
}

// ZeRO-3 shards w1 and w2 into 8 and 3 elements: states of 11 elements, 44 B. One leaves for 1 B to
// 44 B, two for up to 88 B.
TEST(OffloadOptimizerTest, StatesLeaveInDeepSpeedsOrderUntilEnoughBytesDo) {
  const auto leaving = [](Bytes bytes) {
    const Plan plan = Resolve(OffloadSpec(3, bytes), TwoLayers(), 2);
    return plan.graphs[0].state_moves.empty() ? std::vector<OptimizerState>()
                                              : plan.graphs[0].state_moves[0].states;
  };
  EXPECT_THAT(leaving(Bytes(0)), testing::IsEmpty());
  EXPECT_THAT(leaving(Bytes(1)), testing::ElementsAre(kFirst));
  EXPECT_THAT(leaving(Bytes(44)), testing::ElementsAre(kFirst));
  EXPECT_THAT(leaving(Bytes(45)), testing::ElementsAre(kFirst, kSecond));
  EXPECT_THAT(leaving(Bytes(1000)), testing::ElementsAre(kFirst, kSecond, kMaster));
}

TEST(OffloadOptimizerTest, TheyComeBackBehindTheEndOfTheLastBackward) {
  const Plan plan = Resolve(OffloadSpec(3, Bytes(45)), TwoLayers(), 2);
  EXPECT_EQ(plan.graphs[0].state_moves,
            (std::vector<StateMove>{{StateMoveKind::kOffload, 0, {kFirst, kSecond}}}));
  EXPECT_EQ(plan.graphs[1].state_moves,
            (std::vector<StateMove>{{StateMoveKind::kReload, 5, {kFirst, kSecond}}}));
}

// One state of ZeRO-2: 44 B are those of ceil(20 / 4) * 2 elements of the flat tensor, 10: 40 B.
// The copy out reads b2 into pinned b3 and frees b2; behind the backward it is allocated again and
// copied back, AdamW waits for it, and the next step's copy out for what AdamW has written.
constexpr char kMoved[] = R"(
0 offload offload exp_avg [40 B] r b3 w b4
1 host free -b3
)";

TEST(LowerOffloadTest, AStateIsCopiedThenFreed) {
  EXPECT_EQ(TinyTaskLines(OffloadSpec(2, Bytes(1)), TwoLayers(), 0, 1), kMoved);
}

TEST(LowerOffloadTest, TheOptimizerWaitsForTheCopyBack) {
  const Schedule schedule = LowerTiny(OffloadSpec(2, Bytes(1)), TwoLayers());
  const TaskId reload = NthTask(schedule, TaskKind::kReload);
  const TaskId update = NthTask(schedule, TaskKind::kOptimizerStep);
  EXPECT_EQ(TaskLabel(schedule, TwoLayers(), TaskId(update.index() - 1)),
            "wait for reload exp_avg");
  EXPECT_EQ(schedule.waits(TaskId(update.index() - 1)).front(), reload);
  EXPECT_LT(NthTask(schedule, TaskKind::kEndBackward), reload);
}

TEST(LowerOffloadTest, PinnedMemoryIsRoundedUpToPowersOfTwo) {
  EXPECT_EQ(LowerTiny(TinySpec(2), TwoLayers()).host_pinned(), Bytes(0));
  EXPECT_EQ(LowerTiny(OffloadSpec(2, Bytes(1)), TwoLayers()).host_pinned(), Bytes(64));
  PlanSpec all = TinySpec(2);
  all.offload_optimizer.all = true;
  EXPECT_EQ(LowerTiny(all, TwoLayers()).host_pinned(), Bytes(192));
}

std::size_t CountTasks(const Schedule& schedule, TaskKind kind) {
  std::size_t count = 0;
  for (const Task& task : schedule.tasks()) {
    count += task.kind == kind ? 1U : 0U;
  }
  return count;
}

TEST(LowerOffloadTest, ThePeriodDecidesHowOftenStatesMove) {
  PlanSpec spec = OffloadSpec(3, Bytes(1));
  spec.options.gradient_accumulation_steps = 3;
  const Schedule once = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(CountTasks(once, TaskKind::kOffload), 1U);
  EXPECT_EQ(once.task(NthTask(once, TaskKind::kOffload)).micro_step, 0);
  EXPECT_EQ(once.task(NthTask(once, TaskKind::kReload)).micro_step, 2);
  spec.options.offload_period = OffloadPeriod::kMicroStep;
  const Schedule each = LowerTiny(spec, TwoLayers());
  EXPECT_EQ(CountTasks(each, TaskKind::kOffload), 3U);
  EXPECT_EQ(CountTasks(each, TaskKind::kReload), 3U);
}

// Lion has no exp_avg_sq, SGD no moment.
TEST(OffloadOptimizerTest, OnlyStatesThatThereAreLeave) {
  const auto leaving = [](OptimizerAlgorithm algorithm) {
    PlanSpec spec = OffloadSpec(3, Bytes(1000));
    spec.options.training.algorithm = algorithm;
    return Resolve(spec, TwoLayers(), 2).graphs[0].state_moves[0].states;
  };
  EXPECT_THAT(leaving(OptimizerAlgorithm::kLion), testing::ElementsAre(kFirst, kMaster));
  EXPECT_THAT(leaving(OptimizerAlgorithm::kSgd), testing::ElementsAre(kMaster));
}

TEST(OffloadOptimizerTest, PlansMoveNoStateThatTheOptimizerLacks) {
  Plan plan = PlanWith(3, {{StateMoveKind::kOffload, 0, {kSecond}}},
                       {{StateMoveKind::kReload, 5, {kSecond}}});
  plan.options.training.algorithm = OptimizerAlgorithm::kLion;
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()),
              testing::Contains("lion keeps no exp_avg_sq of bfloat16 parameters"));
}

struct FaultRow {
  const char* name;
  std::vector<StateMove> forward;
  std::vector<StateMove> backward;
  const char* fault;
};

std::vector<FaultRow> FaultRows() {
  constexpr auto kOut = StateMoveKind::kOffload;
  constexpr auto kIn = StateMoveKind::kReload;
  const OptimizerState wide{DType::kFloat32, OptimizerTensor::kMaster};
  return {{"NeverReloaded",
           {{kOut, 0, {kFirst}}},
           {},
           "exp_avg of bfloat16 parameters: offloaded and not reloaded before the optimizer step"},
          {"NeverOffloaded",
           {},
           {{kIn, 0, {kMaster}}},
           "hp_param of bfloat16 parameters: reloaded and not offloaded before"},
          {"Twice",
           {{kOut, 0, {kFirst}}, {kOut, 1, {kFirst}}},
           {{kIn, 5, {kFirst}}},
           "exp_avg of bfloat16 parameters: offloaded a second time"},
          {"NoSuchState",
           {{kOut, 0, {wide}}},
           {},
           "there is no hp_param of float32 parameters with a gradient"},
          {"OutOfTheGraph",
           {{kOut, 5, {kFirst}}},
           {{kIn, 5, {kFirst}}},
           "positions of state moves must ascend and stay within the graph, found 5"},
          {"Descending",
           {{kOut, 2, {kFirst}}, {kOut, 1, {kSecond}}},
           {{kIn, 5, {kFirst, kSecond}}},
           "positions of state moves must ascend and stay within the graph, found 1"},
          {"NamedWait",
           {{StateMoveKind::kSynchronize, 0, {kFirst}}},
           {},
           "a synchronization names no states, found exp_avg of bfloat16 parameters"}};
}

TEST(CheckStateMovesTest, EachFaultHasItsSentence) {
  for (const FaultRow& row : FaultRows()) {
    EXPECT_THAT(FindPlanFaults(PlanWith(2, row.forward, row.backward), TwoLayers()),
                testing::ElementsAre(row.fault))
        << row.name;
  }
}

TEST(PlanFileTest, StateMovesAreReadAsTheyArePrinted) {
  const Plan plan = PlanWith(
      3, {{StateMoveKind::kOffload, 0, {kFirst, kMaster}}},
      {{StateMoveKind::kReload, 2, {kMaster, kFirst}}, {StateMoveKind::kSynchronize, 5, {}}});
  const Json printed = PrintPlan(plan, TwoLayers());
  EXPECT_EQ(
      printed["graphs"][0]["state_moves"].dump(),
      R"([{"position":0,"kind":"offload","states":["bfloat16.exp_avg","bfloat16.hp_param"]}])");
  EXPECT_EQ(ReadPlan(printed, TwoLayers(), PointerLocator("p")), plan);
}

TEST(PlanFileTest, UnknownStatesAreErrors) {
  Json printed = PrintPlan(PlanWith(3, {}, {}), TwoLayers());
  printed["graphs"][0]["state_moves"] =
      Json::parse(R"([{"position": 0, "kind": "offload", "states": ["bfloat16.momentum"]}])");
  EXPECT_THAT(ErrorText([&] { ReadPlan(printed, TwoLayers(), PointerLocator("p")); }),
              testing::HasSubstr("expected a dtype and exp_avg, exp_avg_sq or hp_param, such as "
                                 "bfloat16.exp_avg, found 'bfloat16.momentum'"));
}

/// Plans whose states leave and come back in different places, for stages 1 to 3.
std::vector<Plan> MovingPlans() {
  const StateMove out{StateMoveKind::kOffload, 0, {kFirst, kSecond, kMaster}};
  std::vector<Plan> plans;
  for (const int stage : {1, 2, 3}) {
    for (const std::size_t back : {0U, 2U, 5U}) {
      for (const auto wait : {StateMoveKind::kReload, StateMoveKind::kSynchronize,
                              StateMoveKind::kSynchronizeDevice}) {
        std::vector<StateMove> backward = {{StateMoveKind::kReload, back, out.states}};
        if (wait != StateMoveKind::kReload) {
          backward.push_back({wait, 5, {}});
        }
        plans.push_back(PlanWith(stage, {out}, backward));
        plans.push_back(plans.back());
        plans.back().options.gradient_accumulation_steps = 2;
        plans.push_back(plans.back());
        plans.back().options.offload_period = OffloadPeriod::kMicroStep;
      }
    }
  }
  return plans;
}

TEST(VerifyOffloadTest, LoweredPlansAreRight) {
  for (const Plan& plan : MovingPlans()) {
    ExpectRight(Lower(plan, TwoLayers(), nullptr, {}), TwoLayers());
  }
}

// A missing event is found exactly where plain reachability finds a race, and the events of both
// copies and of the wait for them prevent one somewhere.
TEST(VerifyOffloadTest, MissingEventsAreFoundWhereTheyMakeARace) {
  std::set<std::string> needed;
  for (const Plan& plan : MovingPlans()) {
    needed.merge(NeededEvents(Lower(plan, TwoLayers(), nullptr, {}), TwoLayers()));
  }
  EXPECT_THAT(needed, testing::IsSupersetOf(
                          {"reload exp_avg", "wait for reload hp_param", "host-synchronize"}));
}

std::vector<Rule> RulesBroken(const Schedule& original, const std::vector<EditableTask>& tasks) {
  std::vector<Rule> rules;
  for (const Violation& violation : Verify(PutTogether(original, tasks), TwoLayers())) {
    rules.push_back(violation.rule);
  }
  return rules;
}

TEST(VerifyOffloadTest, MissingHalvesOfAMoveAreFound) {
  const Schedule schedule = LowerTiny(OffloadSpec(2, Bytes(1)), TwoLayers());
  const auto tasks = TakeApart(schedule);
  const auto without = [&](std::size_t index) {
    auto changed = tasks;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(index));
    return RulesBroken(schedule, changed);
  };
  const std::size_t out = NthTask(schedule, TaskKind::kOffload).index();
  const std::size_t back = NthTask(schedule, TaskKind::kReload).index();
  EXPECT_THAT(without(out), testing::Contains(Rule::kUsedBeforeWritten));  // of pinned memory
  EXPECT_THAT(without(out + 1), testing::Contains(Rule::kAllocatedTwice));
  EXPECT_THAT(without(back), testing::IsSupersetOf({Rule::kUsedUnallocated, Rule::kNeverReturned}));
}

// The free follows its copy; in front of it, the copy reads what is gone.
TEST(VerifyOffloadTest, AFreeBeforeTheCopyIsFound) {
  const Schedule schedule = LowerTiny(OffloadSpec(2, Bytes(1)), TwoLayers());
  auto tasks = TakeApart(schedule);
  std::swap(tasks[0], tasks[1]);
  EXPECT_THAT(RulesBroken(schedule, tasks), testing::Contains(Rule::kUsedUnallocated));
}

}  // namespace
}  // namespace dcsim
