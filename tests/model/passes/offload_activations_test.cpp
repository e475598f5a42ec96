// Saved activations that leave the GPU between forward and backward: what plans may say, what it is
// lowered to, and that every event of it is needed.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/plan_reader.h"
#include "model/ir/task_label.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/model/passes/needed_events.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// A value of TwoLayers by its name.
ValueId Find(const std::string& name) {
  const Graph graph = TwoLayers();
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].name == name) {
      return ValueId(i);
    }
  }
  return ValueId::None();
}

/// DeepCompile's plan for TwoLayers, forward "a = mm(x, w1); b = mm(a, w2); sum", backward "fill,
/// mm(gb, w2), mm(a, gb), mm(x, ga)", in which `a` leaves and comes back at these positions. The
/// events of both graphs are sorted by position; new ones come behind those of their position.
Plan PlanWith(std::size_t out, std::size_t back, std::size_t wait, ValueId value = Find("a")) {
  PlanSpec spec = TinySpec(3);
  spec.policy = "deepcompile-0.19.8";
  Plan plan = Resolve(spec, TwoLayers(), 2);
  const auto add = [&](std::size_t g, GraphEventKind kind, std::size_t position) {
    auto& events = plan.graphs[g].events;
    const auto behind = std::find_if(events.begin(), events.end(), [&](const GraphEvent& event) {
      return event.position > position;
    });
    events.insert(behind, {kind, position, {}, {value}});
  };
  add(0, GraphEventKind::kOffloadActivation, out);
  add(1, GraphEventKind::kReloadActivation, back);
  add(1, GraphEventKind::kWaitActivation, wait);
  return plan;
}

std::vector<std::string> Labels(const Schedule& schedule) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    labels.push_back(TaskLabel(schedule, TwoLayers(), TaskId(i)));
  }
  return labels;
}

// Behind mm(a, w2) the copy out, for which compute waits, and the end of `a` on the GPU; in the
// backward it comes back while fill and mm run, and stays until the backward has ended.
TEST(LowerActivationsTest, LeavesBehindItsLastUseAndStaysUntilTheBackwardHasEnded) {
  auto labels = Labels(Lower(PlanWith(2, 0, 2), TwoLayers(), nullptr, {}));
  labels.resize(31);  // the optimizer step follows
  EXPECT_THAT(
      labels,
      testing::ElementsAre(
          "all-gather w1", "wait for all-gather w1", "aten::mm", "release w1", "all-gather w2",
          "wait for all-gather w2", "aten::mm", "release w2", "offload activation",
          "wait for offload activation", "free", "aten::sum", "free", "set-tangents",
          "all-gather w2", "reload activation", "aten::fill", "wait for all-gather w2", "aten::mm",
          "release w2", "wait for reload activation", "aten::mm", "allocate", "reduce-grad-copy w2",
          "aten::mm", "reduce-grad-copy w1", "pre-divide 2 tensors", "reduce 2 tensors",
          "wait for reduce-grad-copy w1", "end-backward", "free"));
}

// `a` is bfloat16[2,5]: 20 B, of which PyTorch pins 32 B. A second micro-step uses the same memory.
TEST(LowerActivationsTest, OnePinnedBufferServesAllMicroSteps) {
  Plan plan = PlanWith(2, 0, 2);
  EXPECT_EQ(Lower(plan, TwoLayers(), nullptr, {}).host_pinned(), Bytes(32));
  plan.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(Lower(plan, TwoLayers(), nullptr, {}).host_pinned(), Bytes(32));
}

TEST(PlanFileTest, ActivationEventsAreReadAsTheyArePrinted) {
  const Plan plan = PlanWith(2, 0, 2);
  const Json printed = PrintPlan(plan, TwoLayers());
  EXPECT_EQ(ReadPlan(printed, TwoLayers(), PointerLocator("p")), plan);
}

struct FaultRow {
  const char* name;
  Plan plan;
  const char* fault;
};

std::vector<FaultRow> FaultRows() {
  Plan once = PlanWith(2, 0, 2);
  std::erase_if(once.graphs[1].events, [](const GraphEvent& event) {
    return event.kind == GraphEventKind::kReloadActivation;
  });
  Plan twice = PlanWith(2, 0, 2);
  twice.graphs[1].events.push_back(
      {GraphEventKind::kWaitActivation, twice.graphs[1].order.size(), {}, {Find("a")}});
  return {{"BeforeItsLastUse", PlanWith(1, 0, 2), "offload of a before its last use"},
          {"AfterItsFirstUse", PlanWith(2, 0, 3), "wait for a after its first use"},
          {"WaitFirst", PlanWith(2, 2, 1), "wait for a before its reload"},
          {"NotSaved", PlanWith(2, 0, 2, Find("x")),
           "offload of x, which is not saved for graph 1 alone"},
          {"NeverBack", once, "a has to be offloaded, reloaded and waited for"},
          {"Twice", twice, "a second wait for a"}};
}

TEST(CheckActivationsTest, EachFaultHasItsSentence) {
  for (const FaultRow& row : FaultRows()) {
    EXPECT_THAT(FindPlanFaults(row.plan, TwoLayers()), testing::Contains(row.fault)) << row.name;
  }
}

/// Plans whose activation comes back in different places.
std::vector<Plan> MovingPlans() {
  std::vector<Plan> plans;
  for (const std::size_t out : {2U, 3U}) {
    for (const std::size_t back : {0U, 1U, 2U}) {
      plans.push_back(PlanWith(out, back, 2));
      plans.push_back(plans.back());
      plans.back().options.gradient_accumulation_steps = 2;
      plans.push_back(plans.back());
      plans.back().options.release = ReleaseMode::kRecordStream;
    }
  }
  return plans;
}

TEST(VerifyActivationsTest, LoweredPlansAreRight) {
  for (const Plan& plan : MovingPlans()) {
    ASSERT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
    ExpectRight(Lower(plan, TwoLayers(), nullptr, {}), TwoLayers());
  }
}

// A missing event is found exactly where plain reachability finds a race, and the events of both
// copies prevent one somewhere.
TEST(VerifyActivationsTest, MissingEventsAreFoundWhereTheyMakeARace) {
  std::set<std::string> needed;
  for (const Plan& plan : MovingPlans()) {
    needed.merge(NeededEvents(Lower(plan, TwoLayers(), nullptr, {}), TwoLayers()));
  }
  EXPECT_THAT(needed, testing::IsSupersetOf({"offload activation", "reload activation",
                                             "wait for reload activation"}));
}

}  // namespace
}  // namespace dcsim
