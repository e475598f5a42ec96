// ZeRO-3's shards in pinned host memory: what plans may say, what it is lowered to, and that every
// event of it is needed.

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/plan_reader.h"
#include "model/ir/task_label.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/model/passes/needed_events.h"
#include "tests/support/error_text.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

PlanSpec OffloadSpec(const std::string& policy = "plain-1") {
  PlanSpec spec = TinySpec(3);
  spec.policy = policy;
  spec.options.offload_parameters = true;
  return spec;
}

std::vector<std::string> Labels(const Schedule& schedule) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    labels.push_back(TaskLabel(schedule, TwoLayers(), TaskId(i)));
  }
  return labels;
}

// The forward uses w1 and w2, the backward w2. Inputs of the forward: w1, w2, x.
TEST(OffloadParametersTest, DeepCompileReloadsAllShardsAsAGraphBegins) {
  const Plan plan = Resolve(OffloadSpec("deepcompile-0.19.8"), TwoLayers(), 2);
  EXPECT_TRUE(plan.options.offload_parameters);
  EXPECT_EQ(plan.graphs[0].events.front(),
            (GraphEvent{GraphEventKind::kReloadShard, 0, {ParamId(0), ParamId(1)}}));
  EXPECT_EQ(plan.graphs[1].events.front(),
            (GraphEvent{GraphEventKind::kReloadShard, 0, {ParamId(1)}}));
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()), testing::IsEmpty());
}

TEST(OffloadParametersTest, ThePassAloneTurnsTheOptionOn) {
  PlanSpec spec = TinySpec(3);
  spec.passes = {"gather_at_use", "offload_parameters"};
  EXPECT_EQ(Resolve(spec, TwoLayers(), 2), Resolve(OffloadSpec(), TwoLayers(), 2));
}

// Shards of w1 and w2 have 8 and 3 elements: 16 B (b0) and 6 B (b1) on the host. A gather (into b9)
// fetches its shard (b10), reads it there, and the copy back and the shard's end come before the
// release.
constexpr char kFirstUse[] = R"(
0 reload reload shard of w1 [16 B] r b0 w b10 +b10
1 gather all-gather w1 [32 B] after 0 r b10 w b9 +b9
2 compute wait for all-gather w1 after 1
3 compute aten::mm r b7,b9 w b11 +b11
4 offload offload shard of w1 [16 B] after 3,0 r b10 w b0
5 host free -b10
6 host release w1 -b9
)";

TEST(LowerShardsTest, AGatherBringsItsShardAndTheReleaseTakesItBack) {
  EXPECT_EQ(TinyTaskLines(OffloadSpec(), TwoLayers(), 0, 6), kFirstUse);
}

TEST(LowerShardsTest, ASecondReloadWaitsForTheCopyToTheHost) {
  const Schedule schedule = LowerTiny(OffloadSpec(), TwoLayers());
  const TaskId first_copy = NthTask(schedule, TaskKind::kOffload, 1);  // of w2, in the forward
  const TaskId reload = NthTask(schedule, TaskKind::kReload, 2);       // of w2, in the backward
  EXPECT_EQ(TaskLabel(schedule, TwoLayers(), reload), "reload shard of w2");
  EXPECT_THAT(schedule.waits(reload), testing::Contains(first_copy));
}

// What AdamW has made of the float32 master weights is narrowed on the GPU and copied out; the next
// step's first copies wait for that.
TEST(LowerShardsTest, TheOptimizerWritesTheHostsShards) {
  const auto labels = Labels(LowerTiny(OffloadSpec(), TwoLayers()));
  const auto store = std::find(labels.begin(), labels.end(), "store-params");
  EXPECT_THAT(std::vector<std::string>(store, labels.end()),
              testing::ElementsAre("store-params", "offload updated shards", "free",
                                   "wait for store-params", "wait for store-params",
                                   "wait for wait for store-params"));
}

// 22 B in one tensor are pinned as 32 B; each on its own would take 16 + 8 B.
TEST(LowerShardsTest, ShardsOfADtypeLieInOnePinnedTensor) {
  EXPECT_EQ(LowerTiny(TinySpec(3), TwoLayers()).host_pinned(), Bytes(0));
  EXPECT_EQ(LowerTiny(OffloadSpec(), TwoLayers()).host_pinned(), Bytes(32));
}

TEST(LowerShardsTest, NoShardIsResidentOnTheGpu) {
  const Schedule schedule = LowerTiny(OffloadSpec(), TwoLayers());
  for (const BufferId id : schedule.residents()) {
    EXPECT_NE(schedule.buffer(id).buffer_class, BufferClass::kParameter);
  }
}

TEST(PlanFileTest, ShardReloadsAreReadAsTheyArePrinted) {
  const Plan plan = Resolve(OffloadSpec("deepcompile-0.19.6"), TwoLayers(), 2);
  const Json printed = PrintPlan(plan, TwoLayers());
  EXPECT_EQ(printed["graphs"][1]["events"][0].dump(),
            R"({"position":0,"kind":"reload_shard","params":["w2"]})");
  EXPECT_EQ(ReadPlan(printed, TwoLayers(), PointerLocator("p")), plan);
}

TEST(CheckEventsTest, AShardComesForAGather) {
  Plan plan = Resolve(OffloadSpec("deepcompile-0.19.8"), TwoLayers(), 2);
  plan.graphs[1].events.front().params = {ParamId(0)};
  EXPECT_THAT(FindPlanFaults(plan, TwoLayers()),
              testing::ElementsAre("reload of the shard of w1, which no gather behind it uses"));
}

TEST(ResolveTest, OffloadedParametersAreZero3s) {
  PlanSpec spec = OffloadSpec();
  spec.options.stage = 2;
  EXPECT_THAT(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
              testing::HasSubstr("offload_parameters is for stage 3 and gather_engine nccl"));
  spec = OffloadSpec();
  spec.options.gather_engine = Engine::kCopyEngine;
  EXPECT_THAT(ErrorText([&] { Resolve(spec, TwoLayers(), 2); }),
              testing::HasSubstr("offload_parameters is for stage 3 and gather_engine nccl"));
}

/// Specs whose shards come and go in different places.
std::vector<PlanSpec> OffloadSpecs() {
  std::vector<PlanSpec> specs = {OffloadSpec(), OffloadSpec("deepcompile-0.19.6"),
                                 OffloadSpec("deepcompile-0.19.8")};
  specs.push_back(OffloadSpec());
  specs.back().gather_ahead = 1;
  specs.push_back(OffloadSpec());
  specs.back().keep_gathered.all = true;
  specs.push_back(OffloadSpec());
  specs.back().offload_optimizer.all = true;
  const std::size_t count = specs.size();
  for (std::size_t i = 0; i < count; ++i) {
    specs.push_back(specs[i]);
    specs.back().options.release = ReleaseMode::kRecordStream;
    specs.push_back(specs[i]);
    specs.back().options.gradient_accumulation_steps = 2;
  }
  return specs;
}

TEST(VerifyShardsTest, LoweredPlansAreRight) {
  for (const PlanSpec& spec : OffloadSpecs()) {
    ExpectRight(LowerTiny(spec, TwoLayers()), TwoLayers());
  }
}

// A missing event is found exactly where plain reachability finds a race, and the events of copies
// both ways prevent one somewhere.
TEST(VerifyShardsTest, MissingEventsAreFoundWhereTheyMakeARace) {
  std::set<std::string> needed;
  for (const PlanSpec& spec : OffloadSpecs()) {
    needed.merge(NeededEvents(LowerTiny(spec, TwoLayers()), TwoLayers()));
  }
  EXPECT_THAT(needed, testing::IsSupersetOf({"all-gather w1", "offload shard of w1",
                                             "offload updated shards", "reload shard of w2",
                                             "wait for wait for store-params"}));
}

}  // namespace
}  // namespace dcsim
