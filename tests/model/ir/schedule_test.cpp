#include "model/ir/schedule.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/row_name.h"

namespace dcsim {
namespace {

ScheduleBuilder Builder() {
  return ScheduleBuilder(4, ScheduleOptions());
}

TaskDraft ComputeDraft(std::uint32_t op) {
  TaskDraft draft;
  draft.stream = StreamRole::kCompute;
  draft.work.kind = Work::Kind::kOp;
  draft.work.subject = op;
  return draft;
}

TEST(ScheduleBuilderTest, TasksAreNumberedInTheOrderOfTheirAddition) {
  ScheduleBuilder builder = Builder();
  EXPECT_EQ(builder.Add(ComputeDraft(0)), TaskId(0));
  EXPECT_EQ(builder.Add(ComputeDraft(1)), TaskId(1));
  EXPECT_EQ(builder.task_count(), 2U);
}

TEST(ScheduleBuilderTest, ListsOfATaskAreItsOwn) {
  ScheduleBuilder builder = Builder();
  Buffer declared;
  declared.bytes = Bytes(1);
  const BufferId buffer = builder.AddBuffer(declared);
  TaskDraft first = ComputeDraft(0);
  first.Allocate(buffer);
  first.Write(buffer);
  builder.Add(first);
  TaskDraft second = ComputeDraft(1);
  second.waits.push_back(TaskId(0));
  second.Read(buffer);
  second.Free(buffer);
  builder.Add(second);
  const Schedule schedule = std::move(builder).Build();
  EXPECT_TRUE(schedule.waits(TaskId(0)).empty());
  ASSERT_EQ(schedule.memory(TaskId(0)).size(), 1U);
  EXPECT_FALSE(schedule.memory(TaskId(0))[0].frees);
  EXPECT_TRUE(schedule.uses(TaskId(0))[0].writes);
  EXPECT_THAT(schedule.waits(TaskId(1)), testing::ElementsAre(TaskId(0)));
  EXPECT_TRUE(schedule.memory(TaskId(1))[0].frees);
  EXPECT_FALSE(schedule.uses(TaskId(1))[0].writes);
}

TEST(ScheduleBuilderTest, LastTaskOfAStreamIsRemembered) {
  ScheduleBuilder builder = Builder();
  EXPECT_TRUE(builder.last(StreamRole::kCompute).is_none());
  builder.Add(ComputeDraft(0));
  builder.Add(TaskDraft());  // on the host
  EXPECT_EQ(builder.last(StreamRole::kCompute), TaskId(0));
  EXPECT_TRUE(builder.last(StreamRole::kGather).is_none());
}

TEST(ScheduleBuilderTest, ResidentsAreListedInOrder) {
  ScheduleBuilder builder = Builder();
  Buffer buffer;
  buffer.bytes = Bytes(1);
  buffer.resident = true;
  const BufferId first = builder.AddBuffer(buffer);
  buffer.resident = false;
  builder.AddBuffer(buffer);
  buffer.resident = true;
  const BufferId third = builder.AddBuffer(buffer);
  const Schedule schedule = std::move(builder).Build();
  EXPECT_THAT(schedule.residents(), testing::ElementsAre(first, third));
}

TEST(ScheduleBuilderTest, EqualWorksBecomeOne) {
  ScheduleBuilder builder = Builder();
  builder.Add(ComputeDraft(7));
  TaskDraft later = ComputeDraft(7);
  later.micro_step = 1;
  later.stream = std::nullopt;
  builder.Add(later);
  const Schedule schedule = std::move(builder).Build();
  EXPECT_EQ(schedule.works().size(), 1U);
  EXPECT_EQ(schedule.task(TaskId(0)).work, schedule.task(TaskId(1)).work);
  EXPECT_EQ(schedule.work(schedule.task(TaskId(1)).work).subject, 7U);
}

struct WorkChange {
  const char* name;
  void (*change)(Work& work);
};

class WorkFieldTest : public testing::TestWithParam<WorkChange> {};

TEST_P(WorkFieldTest, TellsTwoWorksApart) {
  ScheduleBuilder builder = Builder();
  TaskDraft draft = ComputeDraft(7);
  builder.Add(draft);
  GetParam().change(draft.work);
  builder.Add(draft);
  EXPECT_EQ(std::move(builder).Build().works().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(All,
                         WorkFieldTest,
                         testing::Values(WorkChange{"Kind",
                                                    [](Work& w) { w.kind = Work::Kind::kMemory; }},
                                         WorkChange{"Launches", [](Work& w) { w.launches = 1; }},
                                         WorkChange{"Events", [](Work& w) { w.events = 1; }},
                                         WorkChange{"Subject", [](Work& w) { w.subject = 8; }},
                                         WorkChange{"Moved", [](Work& w) { w.moved = Bytes(1); }},
                                         WorkChange{"Offset", [](Work& w) { w.offset = 1; }}),
                         RowName());

Collective TwoCalls() {
  Collective collective;
  collective.ranks = 4;
  collective.calls = {{ParamId(0), 8, 0}, {ParamId(1), 4, 8}};
  return collective;
}

TEST(ScheduleBuilderTest, EqualCollectivesBecomeOne) {
  ScheduleBuilder builder = Builder();
  EXPECT_EQ(builder.AddCollective(TwoCalls()), builder.AddCollective(TwoCalls()));
  EXPECT_EQ(std::move(builder).Build().collectives().size(), 1U);
}

struct CollectiveChange {
  const char* name;
  void (*change)(Collective& collective);
};

class CollectiveFieldTest : public testing::TestWithParam<CollectiveChange> {};

TEST_P(CollectiveFieldTest, TellsTwoCollectivesApart) {
  ScheduleBuilder builder = Builder();
  Collective other = TwoCalls();
  GetParam().change(other);
  EXPECT_NE(builder.AddCollective(TwoCalls()), builder.AddCollective(other));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    CollectiveFieldTest,
    testing::Values(
        CollectiveChange{"Kind", [](Collective& c) { c.kind = CollectiveKind::kAllReduce; }},
        CollectiveChange{"Engine", [](Collective& c) { c.engine = Engine::kCopyEngine; }},
        CollectiveChange{"DType", [](Collective& c) { c.dtype = DType::kFloat32; }},
        CollectiveChange{"Communicator", [](Collective& c) { c.communicator = 1; }},
        CollectiveChange{"OneLaunch", [](Collective& c) { c.one_launch = true; }},
        CollectiveChange{"Ranks", [](Collective& c) { c.ranks = 2; }},
        CollectiveChange{"CallFewer", [](Collective& c) { c.calls.pop_back(); }},
        CollectiveChange{"Param", [](Collective& c) { c.calls[1].param = ParamId(2); }},
        CollectiveChange{"Elements", [](Collective& c) { c.calls[1].elements = 8; }},
        CollectiveChange{"Offset", [](Collective& c) { c.calls[1].offset = 16; }}),
    RowName());

TEST(ScheduleTest, FindsTheCollectiveOfACollectiveTaskOnly) {
  ScheduleBuilder builder = Builder();
  TaskDraft gather;
  gather.kind = TaskKind::kAllGather;
  gather.stream = StreamRole::kGather;
  gather.work.kind = Work::Kind::kCollective;
  gather.work.subject = static_cast<std::uint32_t>(builder.AddCollective(TwoCalls()).index());
  builder.Add(gather);
  builder.Add(ComputeDraft(0));
  const Schedule schedule = std::move(builder).Build();
  ASSERT_NE(schedule.FindCollective(TaskId(0)), nullptr);
  EXPECT_EQ(*schedule.FindCollective(TaskId(0)), TwoCalls());
  EXPECT_EQ(schedule.FindCollective(TaskId(1)), nullptr);
}

TEST(ScheduleBuilderDeathTest, BuffersHaveBytes) {
  ScheduleBuilder builder = Builder();
  EXPECT_DEATH(builder.AddBuffer(Buffer()), "a buffer has bytes");
}

TEST(ScheduleBuilderDeathTest, HostTasksUseNoBuffers) {
  ScheduleBuilder builder = Builder();
  Buffer buffer;
  buffer.bytes = Bytes(1);
  TaskDraft draft;
  draft.Read(builder.AddBuffer(buffer));
  EXPECT_DEATH(builder.Add(draft), "the host uses no buffers");
}

TEST(ScheduleBuilderDeathTest, EventsAreRecordedOnStreams) {
  ScheduleBuilder builder = Builder();
  builder.Add(TaskDraft());  // on the host
  TaskDraft draft = ComputeDraft(0);
  draft.waits.push_back(TaskId(0));
  EXPECT_DEATH(builder.Add(draft), "events are recorded on streams");
}

// 12 elements of bfloat16.
TEST(CollectiveTest, PayloadIsTheFullTensorsOfAllCalls) {
  EXPECT_EQ(TwoCalls().payload(), Bytes(24));
}

struct Wire {
  const char* name;
  CollectiveKind kind;
  int ranks;
  std::int64_t elements;  // of one byte
  std::int64_t bytes;
};

class WireBytesTest : public testing::TestWithParam<Wire> {};

TEST_P(WireBytesTest, IsTheSharePerRankRoundedUp) {
  Collective collective;
  collective.kind = GetParam().kind;
  collective.dtype = DType::kUInt8;
  collective.ranks = GetParam().ranks;
  collective.calls = {{ParamId(0), GetParam().elements, 0}};
  EXPECT_EQ(collective.wire(), Bytes(GetParam().bytes));
}

// nccl-tests doc/PERFORMANCE.md: each rank sends (n-1)/n of the payload in a ring all-gather or
// reduce-scatter, 2 (n-1)/n in an all-reduce. 1001 * 3/4 = 750.75; 1001 * 6/4 = 1501.5.
INSTANTIATE_TEST_SUITE_P(
    Kinds,
    WireBytesTest,
    testing::Values(Wire{"Gather", CollectiveKind::kAllGather, 4, 1000, 750},
                    Wire{"GatherRoundedUp", CollectiveKind::kAllGather, 4, 1001, 751},
                    Wire{"Scatter", CollectiveKind::kReduceScatter, 8, 800, 700},
                    Wire{"Reduce", CollectiveKind::kAllReduce, 4, 1000, 1500},
                    Wire{"ReduceRoundedUp", CollectiveKind::kAllReduce, 4, 1001, 1502},
                    Wire{"OneRankSendsNothing", CollectiveKind::kAllReduce, 1, 1000, 0}),
    RowName());

TEST(CollectiveTest, EachCallOfAGroupIsALaunchUnlessTheyAreOne) {
  Collective collective = TwoCalls();
  EXPECT_EQ(collective.launches(), 2U);
  collective.one_launch = true;
  EXPECT_EQ(collective.launches(), 1U);
}

std::size_t CountDistinct(std::span<const std::string_view> names) {
  return std::set<std::string_view>(names.begin(), names.end()).size();
}

TEST(NamesTest, EveryTaskKindHasItsOwnName) {
  constexpr auto kCount = static_cast<std::size_t>(TaskKind::kReduceCopyIn) + 1;
  EXPECT_EQ(TaskKindNames().size(), kCount);
  EXPECT_EQ(CountDistinct(TaskKindNames()), kCount);
  EXPECT_EQ(TaskKindName(TaskKind::kCompute), "compute");
  EXPECT_EQ(TaskKindName(TaskKind::kEndBackward), "end-backward");
  EXPECT_EQ(TaskKindName(TaskKind::kGatherUpdated), "gather-updated");
  EXPECT_EQ(TaskKindName(TaskKind::kUnflatten), "unflatten");
  EXPECT_EQ(TaskKindName(TaskKind::kReload), "reload");
  EXPECT_EQ(TaskKindName(TaskKind::kCastShard), "cast-shard");
  EXPECT_EQ(TaskKindName(TaskKind::kCopyInputs), "copy-inputs");
  EXPECT_EQ(TaskKindName(TaskKind::kCastBucket), "cast-bucket");
  EXPECT_EQ(TaskKindName(TaskKind::kHostCalls), "host-calls");
  EXPECT_EQ(TaskKindName(TaskKind::kReduceCopyIn), "reduce-copy-in");
}

TEST(NamesTest, EveryBufferClassHasItsOwnName) {
  constexpr auto kCount = static_cast<std::size_t>(BufferClass::kPinnedHost) + 1;
  EXPECT_EQ(BufferClassNames().size(), kCount);
  EXPECT_EQ(CountDistinct(BufferClassNames()), kCount);
  EXPECT_EQ(BufferClassName(BufferClass::kParameter), "parameters");
  EXPECT_EQ(BufferClassName(BufferClass::kReduceBucket), "reduce buckets");
  EXPECT_EQ(BufferClassName(BufferClass::kWorkspace), "workspaces");
  EXPECT_EQ(BufferClassName(BufferClass::kPinnedHost), "pinned host memory");
}

TEST(NamesTest, StreamsCollectivesAndEnginesAreNamedInEnumeratorOrder) {
  EXPECT_EQ(StreamRoleName(StreamRole::kCompute), "compute");
  EXPECT_EQ(StreamRoleName(StreamRole::kCopy), "copy");
  EXPECT_EQ(StreamRoleName(StreamRole::kOffload), "offload");
  EXPECT_EQ(StreamRoleName(StreamRole::kReload), "reload");
  EXPECT_THAT(CollectiveKindNames(),
              testing::ElementsAre("all_gather", "reduce_scatter", "all_reduce"));
  EXPECT_THAT(EngineNames(), testing::ElementsAre("nccl", "copy_engine"));
}

}  // namespace
}  // namespace dcsim
