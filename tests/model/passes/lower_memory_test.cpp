#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/schedule_text.h"
#include "model/passes/lower.h"
#include "model/passes/resolve.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

// When outputs that the caller holds, and what ops allocate for themselves, come and go.

/// y and the loss are held; so are the input and the weight, whose memory is not the step's to
/// free.
Graph HeldOutputs() {
  return ParseGraphText(R"(
graph held 1 tokens
param w bfloat16[4]
input x bfloat16[5]
forward
  y: bfloat16[3] = my::op(x, w)
  l: bfloat16[] = my::loss(y)
  loss l
  output y held
  output x as echo held
  output w as weight held
backward
  tangent t: bfloat16[] of l
  g: bfloat16[4] = my::grad(t)
  gradient w = g
)");
}

// The caller holds y and the loss until the next forward has returned: the first micro-step frees
// those of the step before (b6, b7), the second those of the first (b8, b9), and its own b6 and b7
// go on to the next step. The input (b5) and the weights (b0) stay.
constexpr char kHeldFirst[] = R"(
0 compute my::op r b6,b0 w b9 +b9
1 compute my::loss r b9 w b10 +b10
2 host free -b7 -b8
)";
constexpr char kHeldSecond[] = R"(
12 compute my::op r b6,b0 w b7 +b7
13 compute my::loss r b7 w b8 +b8
14 host free -b9 -b10
)";

TEST(LowerMemoryTest, HeldOutputsGoAfterTheNextForward) {
  PlanSpec spec = TinySpec(2);
  spec.options.gradient_accumulation_steps = 2;
  EXPECT_EQ(TinyTaskLines(spec, HeldOutputs(), 0, 2), kHeldFirst);
  EXPECT_EQ(TinyTaskLines(spec, HeldOutputs(), 12, 14), kHeldSecond);
}

TEST(LowerMemoryTest, OnlyHeldOutputsOfTheLastMicroStepAreCarried) {
  PlanSpec spec = TinySpec(2);
  spec.options.gradient_accumulation_steps = 2;
  const Schedule schedule = LowerTiny(spec, HeldOutputs());
  std::vector<Bytes> carried;
  for (const Buffer& buffer : schedule.buffers()) {
    if (buffer.carried) {
      EXPECT_EQ(buffer.buffer_class, BufferClass::kHeldOutput);
      carried.push_back(buffer.bytes);
    }
  }
  EXPECT_THAT(carried, testing::ElementsAre(Bytes(6), Bytes(2)));
}

// An output that is not held goes after its last use (y, b8).
constexpr char kNotHeld[] = R"(
0 compute my::op r b6,b0 w b8 +b8
1 compute my::loss r b8 w b7 +b7 -b8
)";

TEST(LowerMemoryTest, OtherOutputsGoAfterTheirLastUse) {
  const Graph graph = ParseGraphText(R"(
graph free 1 tokens
param w bfloat16[4]
input x bfloat16[5]
forward
  y: bfloat16[3] = my::op(x, w)
  l: bfloat16[] = my::loss(y)
  loss l
  output y
)");
  EXPECT_EQ(TinyTaskLines(TinySpec(2), graph, 0, 1), kNotHeld);
}

/// The text of a graph of one op over x in ZeRO-2, from its first task on.
std::string LinesOf(const Graph& graph, const Profile* profile) {
  const Plan plan = Resolve(TinySpec(2), graph, 2);
  const Workspaces none;
  const Schedule schedule = Lower(plan, graph, profile, none);
  const std::string text = PrintScheduleText(schedule, graph);
  return "\n" + text.substr(text.find("\n0 ") + 1);
}

/// op 0 makes y and a return that nothing uses; op 1 makes the loss.
Graph OneOp() {
  return ParseGraphText(R"(
graph one-op 1 tokens
input x float32[2]
forward
  y: float32[4], _ = my::op(x)
  l: float32[] = my::loss(y)
  loss l
)");
}

// b0 is the input, b1 the loss.
constexpr char kWithoutProfile[] = R"(
0 compute my::op r b0 w b2 +b2
1 compute my::loss r b2 w b1 +b1 -b2
2 host free -b1
)";

TEST(LowerMemoryTest, WithoutAProfileOpsAllocateTheirOutputs) {
  EXPECT_EQ(LinesOf(OneOp(), nullptr), kWithoutProfile);
}

/// A profile of op 0 with this footprint.
Profile Footprint(std::vector<FootprintStep> steps) {
  Profile profile;
  OpProfile entry;
  entry.op = OpId(0);
  entry.footprint = std::move(steps);
  profile.ops.push_back(entry);
  return profile;
}

FootprintStep Allocate(std::uint32_t block, std::int64_t bytes, std::int32_t output) {
  return {FootprintStep::Kind::kAllocate, block, Bytes(bytes), output};
}

FootprintStep Free(std::uint32_t block) {
  return {FootprintStep::Kind::kFree, block, Bytes(), -1};
}

// A temporary of 512 B, the output y, a temporary of 64 B, and the first one goes: the calls of the
// profile in their order. What it keeps and does not return, the second temporary (b4), goes when
// the op is done.
constexpr char kWithProfile[] = R"(
0 compute my::op r b0 w b3 +b2 +b3 +b4 -b2 -b4
1 compute my::loss r b3 w b1 +b1 -b3
2 host free -b1
)";

TEST(LowerMemoryTest, WithAProfileOpsMakeTheirOwnCalls) {
  const Profile profile =
      Footprint({Allocate(0, 512, -1), Allocate(1, 16, 0), Allocate(2, 64, -1), Free(0)});
  EXPECT_EQ(LinesOf(OneOp(), &profile), kWithProfile);
}

TEST(LowerMemoryTest, TemporariesHaveTheirMeasuredSize) {
  const Graph graph = OneOp();
  const Profile profile = Footprint({Allocate(0, 512, -1), Free(0)});
  const Workspaces none;
  const Schedule schedule = Lower(Resolve(TinySpec(2), graph, 2), graph, &profile, none);
  EXPECT_EQ(schedule.buffer(BufferId(2)).bytes, Bytes(512));
  EXPECT_EQ(schedule.buffer(BufferId(2)).buffer_class, BufferClass::kTemporary);
}

// The second return is not used: its block is a temporary.
constexpr char kUnusedReturn[] = R"(
0 compute my::op r b0 w b2 +b2 +b3 -b3
1 compute my::loss r b2 w b1 +b1 -b2
2 host free -b1
)";

TEST(LowerMemoryTest, BlockOfAnUnusedReturnGoesWithTheOp) {
  const Profile profile = Footprint({Allocate(0, 16, 0), Allocate(1, 8, 1)});
  EXPECT_EQ(LinesOf(OneOp(), &profile), kUnusedReturn);
}

// The profile does not mention y: it is allocated behind what the profile says.
constexpr char kUnmentionedOutput[] = R"(
0 compute my::op r b0 w b3 +b2 -b2 +b3
1 compute my::loss r b3 w b1 +b1 -b3
2 host free -b1
)";

TEST(LowerMemoryTest, OutputsThatAProfileLacksAreAllocatedLast) {
  const Profile profile = Footprint({Allocate(0, 512, -1), Free(0)});
  EXPECT_EQ(LinesOf(OneOp(), &profile), kUnmentionedOutput);
}

// An empty tensor takes no memory, even where a profile claims that it did.
constexpr char kEmptyOutput[] = R"(
0 compute my::op r b0 +b2 -b2
1 compute my::loss w b1 +b1
2 host free -b1
)";

TEST(LowerMemoryTest, EmptyTensorsHaveNoBuffer) {
  const Graph graph = ParseGraphText(R"(
graph empty 1 tokens
input x float32[2]
forward
  y: float32[0] = my::op(x)
  l: float32[] = my::loss(y)
  loss l
)");
  const Profile profile = Footprint({Allocate(0, 16, 0)});
  EXPECT_EQ(LinesOf(graph, &profile), kEmptyOutput);
}

// v and u are views of a: no kernel, no memory of their own; a goes with the view that uses it
// last.
constexpr char kViews[] = R"(
0 compute my::op r b0 w b2 +b2
1 host aten::t
2 compute my::loss r b2 w b1 +b1
3 host aten::t -b2
4 host free -b1
)";

TEST(LowerMemoryTest, ViewsAreHostTasksWithoutMemory) {
  const Graph graph = ParseGraphText(R"(
graph views 1 tokens
input x float32[2]
forward
  a: float32[2,3] = my::op(x)
  v: float32[3,2] views a = aten::t(a)
  l: float32[] = my::loss(v)
  loss l
  u: float32[3,2] views a = aten::t(a)
)");
  EXPECT_EQ(LinesOf(graph, nullptr), kViews);
}

/// Residents from the n-th on: class, bytes, and the task that asks for them.
std::vector<std::tuple<BufferClass, Bytes, TaskId>> LateResidents(const Schedule& schedule,
                                                                  std::size_t first) {
  std::vector<std::tuple<BufferClass, Bytes, TaskId>> late;
  for (const BufferId id : schedule.residents().subspan(first)) {
    const Buffer& buffer = schedule.buffer(id);
    late.emplace_back(buffer.buffer_class, buffer.bytes, buffer.first_user);
  }
  return late;
}

// The input is there before all steps. The sum needs no workspace, the first product has two, and
// the first that adds a vector one more.
TEST(LowerMemoryTest, WorkspacesComeWithTheFirstOpThatNeedsThem) {
  const Graph graph = ParseGraphText(R"(
graph products 2 tokens
input x float32[2,2]
forward
  s: float32[2] = aten::sum(x)
  y: float32[2,2] = aten::mm(x, x)
  z: float32[2,2] = aten::mm(y, x)
  b: float32[2,2] = aten::addmm(s, z, x)
  c: float32[2,2] = aten::addmm(s, b, x)
  l: float32[] = aten::sum(c)
  loss l
)");
  const Workspaces workspaces{{Bytes(4096), Bytes(1024)}, {Bytes(512)}};
  const Schedule schedule = Lower(Resolve(TinySpec(2), graph, 2), graph, nullptr, workspaces);
  EXPECT_THAT(LateResidents(schedule, 1),
              testing::ElementsAre(std::tuple(BufferClass::kWorkspace, Bytes(4096), TaskId(1)),
                                   std::tuple(BufferClass::kWorkspace, Bytes(1024), TaskId(1)),
                                   std::tuple(BufferClass::kWorkspace, Bytes(512), TaskId(3))));
}

TEST(LowerMemoryTest, WithoutProductsThereAreNoWorkspaces) {
  const Graph graph = OneOp();
  const Schedule schedule =
      Lower(Resolve(TinySpec(2), graph, 2), graph, nullptr, {{Bytes(4096)}, {Bytes(512)}});
  EXPECT_EQ(schedule.residents().size(), 1U);
}

// 3 parameters in one NCCL group: one launch, one wait behind compute, a buffer each.
TEST(LowerMemoryTest, GatherGroupOfOneDTypeIsOneLaunch) {
  Plan plan = Resolve(TinySpec(3), TwoLayers(), 2);
  plan.graphs[0].gathers = {{0, {ParamId(0), ParamId(1)}}};
  const Schedule schedule = Lower(plan, TwoLayers(), nullptr, {});
  EXPECT_EQ(schedule.task(TaskId(0)).kind, TaskKind::kAllGather);
  EXPECT_EQ(schedule.FindCollective(TaskId(0))->calls.size(), 2U);
  EXPECT_EQ(schedule.memory(TaskId(0)).size(), 2U);
  EXPECT_EQ(schedule.task(TaskId(1)).kind, TaskKind::kWait);
}

// NCCL groups may mix dtypes, the cost tables do not: a group of two dtypes is two launches.
TEST(LowerMemoryTest, GatherGroupOfTwoDTypesIsTwoLaunches) {
  const Graph graph = ParseGraphText(R"(
graph mixed 1 tokens
param a float32[4]
param b bfloat16[4]
forward
  l: float32[] = my::loss(a, b)
  loss l
)");
  Plan plan = Resolve(TinySpec(3), graph, 2);
  plan.graphs[0].gathers = {{0, {ParamId(0), ParamId(1)}}};
  const Schedule schedule = Lower(plan, graph, nullptr, {});
  ASSERT_EQ(schedule.collectives().size(), 2U);
  EXPECT_EQ(schedule.collectives()[0].dtype, DType::kBFloat16);
  EXPECT_EQ(schedule.collectives()[1].dtype, DType::kFloat32);
}

}  // namespace
}  // namespace dcsim
