#include <vector>

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/lower.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// Two products of one block; the second is computed again where the first has its gradient.
Graph Blocks() {
  return ParseGraphText(R"(
graph blocks 2 tokens
param w1 bfloat16[3,5]
param w2 bfloat16[5,1]
input x bfloat16[2,3]
forward
  a: bfloat16[2,5] = aten::mm(x, w1) @block.first
  b: bfloat16[2,1] = aten::mm(a, w2) @block.second
  c: bfloat16[2,1] = aten::relu(b) @block
  l: bfloat16[] = aten::sum(c)
  loss l
  save a
backward of 0
  tangent t: bfloat16[] of l
  gb: bfloat16[2,1] = aten::fill(t)
  g2: bfloat16[5,1] = aten::mm(a, gb) @block.second
  ga: bfloat16[2,5] = aten::mm(gb, w2) @block.second
  g1: bfloat16[3,5] = aten::mm(x, ga) @block.first
  gradient w1 = g1
  gradient w2 = g2
)");
}

PlanSpec HookedSpec(int stage) {
  PlanSpec spec = TinySpec(stage);
  spec.options.module_hooks = ModuleHooks::kDeepSpeed;
  return spec;
}

/// Modules whose hooks run, by call, in host order; with the kind of the task behind each.
std::vector<std::pair<std::uint32_t, TaskKind>> HookedIn(const Schedule& schedule) {
  std::vector<std::pair<std::uint32_t, TaskKind>> hooked;
  for (std::size_t i = 0; i + 1 < schedule.task_count(); ++i) {
    const Work& work = schedule.work(schedule.task(TaskId(i)).work);
    if (work.python.modules > 0) {
      hooked.emplace_back(work.python.modules, schedule.task(TaskId(i + 1)).kind);
    }
  }
  return hooked;
}

// The root, the block and its first part; then its second. The backward starts outside the block.
// A module fetches its parameters before it computes.
TEST(LowerModuleHooksTest, EachGraphEntersAModuleOnce) {
  using Hooked = std::vector<std::pair<std::uint32_t, TaskKind>>;
  const Hooked expected = {{3, TaskKind::kAllGather},
                           {1, TaskKind::kAllGather},
                           {1, TaskKind::kCompute},
                           {2, TaskKind::kCompute},
                           {1, TaskKind::kCompute}};
  EXPECT_EQ(HookedIn(LowerTiny(HookedSpec(3), Blocks())), expected);
}

TEST(LowerModuleHooksTest, OtherStagesAndPlansHaveNone) {
  EXPECT_TRUE(HookedIn(LowerTiny(HookedSpec(2), Blocks())).empty());
  EXPECT_TRUE(HookedIn(LowerTiny(TinySpec(3), Blocks())).empty());
}

}  // namespace
}  // namespace dcsim
