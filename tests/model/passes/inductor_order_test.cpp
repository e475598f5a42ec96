#include "model/passes/deepcompile/inductor_order.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/graph/step_facts.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "model/passes/verify.h"
#include "sim/analysis/policy_measurements.h"
#include "tests/support/compiled_document.h"
#include "tests/support/error_text.h"
#include "tests/support/source_folder.h"
#include "tools/common/compiled_form.h"
#include "tools/common/load.h"

namespace dcsim {
namespace {

const std::string kTraces = SourceFolder() + "/traces/";

/// The ZeRO-3 form of a committed workload with its profile.
ProfiledWorkload CompiledWorkload(const std::string& name) {
  return TakeForm(LoadProfiledWorkload(kTraces + name, "NVIDIA H200"), {Backend::kInductor, 3},
                  std::cerr);
}

PlanSpec CompiledSpec(const std::string& policy) {
  PlanSpec spec;
  spec.policy = policy;
  spec.options.stage = 3;
  spec.options.backend = Backend::kInductor;
  spec.options.release = ReleaseMode::kRecordStream;
  return spec;
}

/// How many gathers of a graph stand right in front of the first use of their parameter.
std::size_t CountAtUse(const Graph& graph, const GraphPlan& plan) {
  const auto uses = FindUses(graph, plan.order);
  return static_cast<std::size_t>(
      std::count_if(plan.events.begin(), plan.events.end(), [&](const GraphEvent& event) {
        return event.kind == GraphEventKind::kGather && event.params.size() == 1 &&
               event.position ==
                   uses[graph.storage_of(graph.param(event.params.front()).value).index()].first;
      }));
}

std::size_t CountGathers(const GraphPlan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.events.begin(), plan.events.end(),
                    [](const GraphEvent& event) { return event.kind == GraphEventKind::kGather; }));
}

TEST(InductorOrderTest, OnlyALossOverClassLabelsPulls) {
  EXPECT_TRUE(PullsForward(CompiledWorkload("tiny-llama").workload.graph, 0));
  EXPECT_FALSE(PullsForward(CompiledWorkload("tiny-llama").workload.graph, 1));
  EXPECT_FALSE(PullsForward(CompiledGraph(), 0));
}

// llama-3.2-1b ties its embeddings: DeepCompile gathers all of it ahead of the first op. Traced,
// each forward gather stands in front of its use.
TEST(InductorOrderTest, PulledGathersStandAtTheirUses) {
  const ProfiledWorkload loaded = CompiledWorkload("llama-3.2-1b");
  const Graph& graph = loaded.workload.graph;
  PlanSpec spec = CompiledSpec("deepcompile-0.19.8");
  spec.passes = {"zero3_compile"};
  const GraphPlan pulled = Resolve(spec, graph, 4).graphs[0];
  EXPECT_EQ(CountAtUse(graph, pulled), CountGathers(pulled));
  spec.gather_order = GatherOrder::kDeepSpeed;
  const GraphPlan kept = Resolve(spec, graph, 4).graphs[0];
  EXPECT_LE(CountAtUse(graph, kept), 2U);  // norms
}

// A prefetch at the start stays; one behind it comes after the loss, where it gathers for the
// backward alone.
TEST(InductorOrderTest, LatePrefetchesGatherForTheBackward) {
  const ProfiledWorkload loaded = CompiledWorkload("tiny-llama");
  const Graph& graph = loaded.workload.graph;
  PlanSpec spec = CompiledSpec("deepcompile-0.19.8");
  spec.passes = {"zero3_compile"};
  const Plan plan = Resolve(spec, graph, 2);
  GraphPlan decided = plan.graphs[0];
  std::vector<ParamId> last;
  for (GraphEvent& event : decided.events) {
    if (event.kind == GraphEventKind::kGather) {
      last = event.params;
    }
  }
  const LoweredGraph lowered =
      TakeInductorOrder(graph, 0, decided, GatherOrder::kInductor211, true);
  ASSERT_FALSE(lowered.late.empty());
  EXPECT_EQ(lowered.late.back(), last);
  GraphPlan backward = plan.graphs[1];
  GatherLate({last}, {}, backward);
  EXPECT_EQ(backward.events.front().params, last);
  EXPECT_EQ(backward.events.front().position, 0U);
  EXPECT_EQ(CountGathers(backward), CountGathers(plan.graphs[1]));
  GraphPlan stays = plan.graphs[1];
  GatherLate({last}, last, stays);
  EXPECT_EQ(stays, plan.graphs[1]);
}

class InductorOrderWorkloadTest
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(InductorOrderWorkloadTest, SchedulesAreRight) {
  const auto& [name, policy] = GetParam();
  const ProfiledWorkload loaded = CompiledWorkload(name);
  const Graph& graph = loaded.workload.graph;
  const Cluster cluster = LoadCluster(SourceFolder() + "/configs/clusters/h200-4.yaml");
  PolicyInputs inputs = MeasureForPolicy({graph, &*loaded.profile, cluster}, 4);
  for (const Bytes memory : {inputs.device_memory, Bytes::GiB(30)}) {
    inputs.device_memory = memory;
    const Plan plan = Resolve(CompiledSpec(policy), graph, 4, inputs);
    EXPECT_THAT(FindPlanFaults(plan, graph), testing::IsEmpty());
    EXPECT_TRUE(std::is_sorted(plan.graphs[1].order.begin(), plan.graphs[1].order.end()));
    EXPECT_THAT(Verify(Lower(plan, graph, &*loaded.profile, {}), graph), testing::IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Committed,
                         InductorOrderWorkloadTest,
                         testing::Combine(testing::Values("tiny-llama", "llama-3.2-1b", "qwen3-8b"),
                                          testing::Values("deepcompile-0.17.1",
                                                          "deepcompile-0.19.6",
                                                          "deepcompile-0.19.8")));

TEST(InductorOrderTest, ActivationsOfCompiledGraphsStay) {
  PlanSpec spec = CompiledSpec("deepcompile-0.19.8");
  spec.offload_activation = true;
  EXPECT_EQ(ErrorText([&] { Resolve(spec, CompiledGraph(), 2); }),
            "plan: offload_activation: not for backend inductor, whose graphs use the memory of "
            "activations again; backend aten has it");
}

TEST(InductorOrderTest, GatherOrderIsForCompiledGraphs) {
  PlanSpec spec = CompiledSpec("plain-1");
  spec.gather_order = GatherOrder::kDeepSpeed;
  EXPECT_EQ(ErrorText([&] { Resolve(spec, CompiledGraph(), 2); }),
            "plan: gather_order is for DeepCompile's policies with stage 3 and backend inductor");
}

}  // namespace
}  // namespace dcsim
