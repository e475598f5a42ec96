#include "model/ir/schedule_text.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/ir/task_label.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// One parameter, gathered, used and released, as the header of schedule_text.h shows it.
Schedule GatherUseRelease() {
  ScheduleBuilder builder(2, ScheduleOptions());
  Buffer buffer;
  buffer.bytes = Bytes(30);
  buffer.resident = true;
  buffer.buffer_class = BufferClass::kParameter;
  const BufferId shards = builder.AddBuffer(buffer);
  buffer.resident = false;
  const BufferId gathered = builder.AddBuffer(buffer);
  TaskDraft gather;
  gather.kind = TaskKind::kAllGather;
  gather.stream = StreamRole::kGather;
  Collective collective;
  collective.calls = {{ParamId(0), 16, 0}};
  gather.work.kind = Work::Kind::kCollective;
  gather.work.subject = static_cast<std::uint32_t>(builder.AddCollective(collective).index());
  gather.Allocate(gathered);
  gather.Read(shards);
  gather.Write(gathered);
  TaskDraft wait;
  wait.kind = TaskKind::kWait;
  wait.stream = StreamRole::kCompute;
  wait.waits = {builder.Add(gather)};
  builder.Add(wait);
  TaskDraft compute;
  compute.stream = StreamRole::kCompute;
  compute.work.kind = Work::Kind::kOp;
  compute.Read(shards);
  compute.Read(gathered);
  builder.Add(compute);
  TaskDraft release;
  release.kind = TaskKind::kRelease;
  release.Free(gathered);
  builder.Add(release);
  return std::move(builder).Build();
}

// 16 elements of bfloat16 are 32 B.
TEST(ScheduleTextTest, TaskShowsStreamLabelPayloadWaitsUsesAndMemory) {
  EXPECT_EQ(PrintScheduleText(GatherUseRelease(), TwoLayers()),
            "resident b0 parameters 30 B\n"
            "0 gather all-gather w1 [32 B] r b0 w b1 +b1\n"
            "1 compute wait for all-gather w1 after 0\n"
            "2 compute aten::mm r b0,b1\n"
            "3 host release w1 -b1\n");
}

TEST(ScheduleTextTest, MemoryWorkShowsTheBytesThatItMoves) {
  ScheduleBuilder builder(2, ScheduleOptions());
  TaskDraft draft;
  draft.kind = TaskKind::kClearGradients;
  draft.stream = StreamRole::kCompute;
  draft.work.kind = Work::Kind::kMemory;
  draft.work.moved = Bytes(1234);
  builder.Add(draft);
  EXPECT_EQ(PrintScheduleText(std::move(builder).Build(), TwoLayers()),
            "0 compute clear-gradients [1234 B]\n");
}

TEST(ScheduleTextTest, SeveralWaitsAreListed) {
  ScheduleBuilder builder(2, ScheduleOptions());
  TaskDraft draft;
  draft.kind = TaskKind::kOptimizerStep;
  draft.stream = StreamRole::kCompute;
  builder.Add(draft);
  builder.Add(draft);
  draft.kind = TaskKind::kEndBackward;
  draft.stream = std::nullopt;
  draft.waits = {TaskId(0), TaskId(1)};
  builder.Add(draft);
  EXPECT_EQ(PrintScheduleText(std::move(builder).Build(), TwoLayers()),
            "0 compute optimizer-step\n"
            "1 compute optimizer-step\n"
            "2 host end-backward after 0,1\n");
}

TEST(TaskLabelTest, OpIsNamedWithItsModule) {
  const Graph graph = ParseGraphText(R"(
graph g 1 tokens
input x float32[4]
forward
  l: float32[] = aten::sum.dim(x) @model.norm
  loss l
)");
  ScheduleBuilder builder(1, ScheduleOptions());
  TaskDraft draft;
  draft.stream = StreamRole::kCompute;
  draft.work.kind = Work::Kind::kOp;
  const TaskId task = builder.Add(draft);
  EXPECT_EQ(TaskLabel(std::move(builder).Build(), graph, task), "aten::sum.dim model.norm");
}

/// The label of a collective task of this kind with these calls.
std::string CollectiveLabel(TaskKind kind, std::vector<CollectiveCall> calls) {
  ScheduleBuilder builder(2, ScheduleOptions());
  Collective collective;
  collective.calls = std::move(calls);
  TaskDraft draft;
  draft.kind = kind;
  draft.stream = StreamRole::kReduce;
  draft.work.kind = Work::Kind::kCollective;
  draft.work.subject = static_cast<std::uint32_t>(builder.AddCollective(collective).index());
  const TaskId task = builder.Add(draft);
  return TaskLabel(std::move(builder).Build(), TwoLayers(), task);
}

TEST(TaskLabelTest, CollectiveOfOneParameterNamesIt) {
  EXPECT_EQ(CollectiveLabel(TaskKind::kReduce, {{ParamId(1), 5, 0}}), "reduce w2");
}

TEST(TaskLabelTest, CollectiveOfSeveralParametersCountsThem) {
  EXPECT_EQ(CollectiveLabel(TaskKind::kReduce, {{ParamId(1), 5, 0}, {ParamId(0), 15, 5}}),
            "reduce 2 tensors");
}

TEST(TaskLabelTest, CollectiveOverEverythingNamesNothing) {
  EXPECT_EQ(CollectiveLabel(TaskKind::kGatherUpdated, {{ParamId::None(), 20, 0}}),
            "gather-updated");
}

}  // namespace
}  // namespace dcsim
