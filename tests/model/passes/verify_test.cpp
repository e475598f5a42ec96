#include "model/passes/verify.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "tests/support/schedule_edit.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

/// A graph with nothing to reduce, so that a schedule by hand need not either.
Graph NoGradients() {
  return ParseGraphText(R"(
graph inference 1 tokens
input x float32[4]
forward
  l: float32[] = my::loss(x)
  loss l
)");
}

/// Writes a schedule task by task. Every task is the graph's one op.
class Hand {
 public:
  BufferId Temporary(StreamRole pool = StreamRole::kCompute) {
    Buffer buffer;
    buffer.bytes = Bytes(512);
    buffer.pool = static_cast<std::uint8_t>(pool);
    return builder_.AddBuffer(buffer);
  }
  BufferId Add(const Buffer& buffer) { return builder_.AddBuffer(buffer); }
  TaskDraft On(StreamRole stream, std::vector<TaskId> waits = {}) const {
    TaskDraft draft;
    draft.stream = stream;
    draft.work.kind = Work::Kind::kOp;
    draft.waits = std::move(waits);
    return draft;
  }
  TaskDraft OnHost(std::vector<TaskId> waits = {}) const {
    TaskDraft draft;
    draft.kind = TaskKind::kFree;
    draft.waits = std::move(waits);
    return draft;
  }
  TaskId Add(const TaskDraft& draft) { return builder_.Add(draft); }
  std::vector<Violation> Verify() && {
    return dcsim::Verify(std::move(builder_).Build(), NoGradients());
  }

 private:
  ScheduleBuilder builder_{2, ScheduleOptions()};
};

std::vector<Rule> Rules(const std::vector<Violation>& violations) {
  std::vector<Rule> rules;
  rules.reserve(violations.size());
  for (const Violation& violation : violations) {
    rules.push_back(violation.rule);
  }
  return rules;
}

/// What one stream writes another reads. `waits` says what the reader waits for.
std::vector<Violation> WriteThenRead(bool waits) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(buffer);
  write.Write(buffer);
  const TaskId written = hand.Add(write);
  TaskDraft read = hand.On(StreamRole::kCopy);
  if (waits) {
    read.waits = {written};
  }
  read.Read(buffer);
  const TaskId done = hand.Add(read);
  TaskDraft free = hand.OnHost({done});
  free.Free(buffer);
  hand.Add(free);
  return std::move(hand).Verify();
}

TEST(VerifyTest, ReaderThatWaitsForItsWriterIsRight) {
  EXPECT_THAT(WriteThenRead(true), testing::IsEmpty());
}

TEST(VerifyTest, ReaderThatDoesNotWaitIsUsedBeforeWritten) {
  const auto violations = WriteThenRead(false);
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kUsedBeforeWritten});
  EXPECT_EQ(violations[0].task, TaskId(1));
  EXPECT_EQ(violations[0].buffer, BufferId(0));
  EXPECT_EQ(violations[0].message,
            "my::loss: may read buffer 0 (activations) before my::loss has written it");
}

TEST(VerifyTest, ReadThatNothingWritesIsUsedBeforeWritten) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft read = hand.On(StreamRole::kCompute);
  read.Allocate(buffer);
  read.Read(buffer);
  read.Free(buffer);
  hand.Add(read);
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kUsedBeforeWritten});
  EXPECT_EQ(violations[0].message,
            "my::loss: reads buffer 0 (activations), which no task before it writes");
}

TEST(VerifyTest, ResidentsNeedNoWriter) {
  Hand hand;
  Buffer resident;
  resident.bytes = Bytes(512);
  resident.resident = true;
  TaskDraft read = hand.On(StreamRole::kCompute);
  read.Read(hand.Add(resident));
  hand.Add(read);
  EXPECT_THAT(std::move(hand).Verify(), testing::IsEmpty());
}

// compute writes, gather waits for compute, copy waits for gather.
TEST(VerifyTest, OrderIsFollowedThroughOtherStreams) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(buffer);
  write.Write(buffer);
  const TaskId between = hand.Add(hand.On(StreamRole::kGather, {hand.Add(write)}));
  TaskDraft read = hand.On(StreamRole::kCopy, {between});
  read.Read(buffer);
  TaskDraft free = hand.OnHost({hand.Add(read)});
  free.Free(buffer);
  hand.Add(free);
  EXPECT_THAT(std::move(hand).Verify(), testing::IsEmpty());
}

// The host waits for the writer before it issues the reader, which itself waits for nothing.
TEST(VerifyTest, OrderIsFollowedThroughTheHost) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(buffer);
  write.Write(buffer);
  hand.Add(hand.OnHost({hand.Add(write)}));
  TaskDraft read = hand.On(StreamRole::kCopy);
  read.Read(buffer);
  TaskDraft free = hand.OnHost({hand.Add(read)});
  free.Free(buffer);
  hand.Add(free);
  EXPECT_THAT(std::move(hand).Verify(), testing::IsEmpty());
}

TEST(VerifyTest, WaitForALaterTaskIsFound) {
  Hand hand;
  hand.Add(hand.On(StreamRole::kCompute, {TaskId(1)}));
  hand.Add(hand.On(StreamRole::kCopy));
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kWaitsForLaterTask});
  EXPECT_EQ(violations[0].task, TaskId(0));
}

// The copy stream reads while compute writes again.
TEST(VerifyTest, WriteBesideAReadIsOverwrittenWhileUsed) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(buffer);
  write.Write(buffer);
  TaskDraft read = hand.On(StreamRole::kCopy, {hand.Add(write)});
  read.Read(buffer);
  const TaskId reader = hand.Add(read);
  TaskDraft again = hand.On(StreamRole::kCompute);
  again.Write(buffer);
  const TaskId writer = hand.Add(again);
  TaskDraft free = hand.OnHost({reader, writer});
  free.Free(buffer);
  hand.Add(free);
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kOverwrittenWhileUsed});
  EXPECT_EQ(violations[0].task, writer);
}

TEST(VerifyTest, UseBeforeTheAllocationIsFound) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Write(buffer);
  hand.Add(write);
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kUsedUnallocated});
  EXPECT_EQ(violations[0].message, "my::loss: buffer 0 (activations) is not allocated yet");
}

TEST(VerifyTest, UseAfterTheFreeIsFound) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(buffer);
  write.Write(buffer);
  write.Free(buffer);
  hand.Add(write);
  TaskDraft read = hand.On(StreamRole::kCompute);
  read.Read(buffer);
  hand.Add(read);
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kUsedUnallocated});
  EXPECT_EQ(violations[0].message, "my::loss: buffer 0 (activations) was freed before this use");
}

TEST(VerifyTest, SecondAllocationIsFound) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft host = hand.OnHost();
  host.Allocate(buffer);
  hand.Add(host);
  host.Free(buffer);
  hand.Add(host);
  EXPECT_EQ(Rules(std::move(hand).Verify()), std::vector<Rule>{Rule::kAllocatedTwice});
}

TEST(VerifyTest, SecondFreeIsFound) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft host = hand.OnHost();
  host.Allocate(buffer);
  host.Free(buffer);
  hand.Add(host);
  TaskDraft again = hand.OnHost();
  again.Free(buffer);
  hand.Add(again);
  EXPECT_EQ(Rules(std::move(hand).Verify()), std::vector<Rule>{Rule::kFreedTwice});
}

TEST(VerifyTest, MissingFreeIsFound) {
  Hand hand;
  const BufferId buffer = hand.Temporary();
  TaskDraft host = hand.OnHost();
  host.Allocate(buffer);
  hand.Add(host);
  const auto violations = std::move(hand).Verify();
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kNeverFreed});
  EXPECT_TRUE(violations[0].task.is_none());
  EXPECT_EQ(violations[0].buffer, buffer);
}

/// A buffer that the copy stream still reads is freed; compute writes a buffer allocated after it.
std::vector<Violation> FreeWhileRead(StreamRole next_pool, bool recorded, bool waits) {
  Hand hand;
  Buffer first;
  first.bytes = Bytes(512);
  first.recorded_streams = recorded ? StreamBit(StreamRole::kCopy) : std::uint8_t{0};
  const BufferId before = hand.Add(first);
  const BufferId after = hand.Temporary(next_pool);
  TaskDraft write = hand.On(StreamRole::kCompute);
  write.Allocate(before);
  write.Write(before);
  TaskDraft read = hand.On(StreamRole::kCopy, {hand.Add(write)});
  read.Read(before);
  const TaskId reader = hand.Add(read);
  TaskDraft free = hand.OnHost();
  free.Free(before);
  hand.Add(free);
  TaskDraft next = hand.On(StreamRole::kCompute);
  if (waits) {
    next.waits = {reader};
  }
  next.Allocate(after);
  next.Write(after);
  next.Free(after);
  const TaskId last = hand.Add(next);
  hand.Add(hand.OnHost({reader, last}));
  return std::move(hand).Verify();
}

TEST(VerifyTest, MemoryThatIsStillReadIsReusedTooEarly) {
  EXPECT_EQ(Rules(FreeWhileRead(StreamRole::kCompute, false, false)),
            std::vector<Rule>{Rule::kReusedTooEarly});
}

TEST(VerifyTest, ReuseBehindTheReaderIsRight) {
  EXPECT_THAT(FreeWhileRead(StreamRole::kCompute, false, true), testing::IsEmpty());
}

TEST(VerifyTest, OtherPoolsDoNotReuseTheMemory) {
  EXPECT_THAT(FreeWhileRead(StreamRole::kGather, false, false), testing::IsEmpty());
}

// The allocator itself waits for the copy stream's event.
TEST(VerifyTest, RecordedStreamsHoldTheMemoryBack) {
  EXPECT_THAT(FreeWhileRead(StreamRole::kCompute, true, false), testing::IsEmpty());
}

/// Weights that the step's last task writes on compute, and its first reads on the gather stream.
/// `waits` puts a wait of the gather stream at the end.
std::vector<Violation> NextStepReads(bool waits) {
  Hand hand;
  Buffer resident;
  resident.bytes = Bytes(512);
  resident.resident = true;
  const BufferId weights = hand.Add(resident);
  TaskDraft gather = hand.On(StreamRole::kGather);
  gather.Read(weights);
  TaskDraft update = hand.On(StreamRole::kCompute, {hand.Add(gather)});
  update.Write(weights);
  const TaskId updated = hand.Add(update);
  if (waits) {
    hand.Add(hand.On(StreamRole::kGather, {updated}));
  }
  return std::move(hand).Verify();
}

TEST(VerifyTest, RaceWithTheNextStepIsFound) {
  const auto violations = NextStepReads(false);
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kUsedBeforeWritten});
  EXPECT_EQ(violations[0].task, TaskId(0));
}

TEST(VerifyTest, WaitAtTheEndOrdersTheNextStep) {
  EXPECT_THAT(NextStepReads(true), testing::IsEmpty());
}

/// A carried buffer, allocated and freed by one host task each where asked for.
std::vector<Violation> Carried(bool allocated, bool freed) {
  Hand hand;
  Buffer buffer;
  buffer.bytes = Bytes(512);
  buffer.carried = true;
  const BufferId id = hand.Add(buffer);
  TaskDraft host = hand.OnHost();
  if (freed) {
    host.Free(id);
  }
  if (allocated) {
    host.Allocate(id);
  }
  hand.Add(host);
  return std::move(hand).Verify();
}

TEST(VerifyTest, CarriedBufferIsFreedInTheNextStep) {
  EXPECT_THAT(Carried(true, true), testing::IsEmpty());
}

TEST(VerifyTest, CarriedBufferThatNoStepFreesIsFound) {
  EXPECT_EQ(Rules(Carried(true, false)), std::vector<Rule>{Rule::kNeverFreed});
}

TEST(VerifyTest, CarriedBufferThatNoStepAllocatesIsFound) {
  EXPECT_EQ(Rules(Carried(false, true)), std::vector<Rule>{Rule::kUsedUnallocated});
}

TEST(VerifyTest, EachRuleHasItsOwnName) {
  std::set<std::string_view> names;
  for (int rule = 0; rule <= static_cast<int>(Rule::kMissingUpdate); ++rule) {
    names.insert(RuleName(static_cast<Rule>(rule)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Rule::kMissingUpdate) + 1);
  EXPECT_EQ(RuleName(Rule::kMissingUpdate), "missing update");
}

/// Violations of a lowered schedule of TwoLayers without its task of a kind.
std::vector<Violation> Without(int stage, TaskKind kind) {
  const Schedule schedule = LowerTiny(TinySpec(stage), TwoLayers());
  auto tasks = TakeApart(schedule);
  std::erase_if(tasks, [kind](const EditableTask& task) { return task.draft.kind == kind; });
  return Verify(PutTogether(schedule, tasks), TwoLayers());
}

// ZeRO-1: the reduction works in place on the bucket, so that nothing but its absence shows.
TEST(VerifyTest, ReductionThatIsMissingIsFoundForEachParameter) {
  const auto violations = Without(1, TaskKind::kReduce);
  EXPECT_EQ(Rules(violations),
            (std::vector<Rule>{Rule::kMissingReduction, Rule::kMissingReduction}));
  EXPECT_EQ(violations[0].message, "the gradient of w1 is reduced 0 times, expected 1");
}

TEST(VerifyTest, UpdateThatIsMissingIsFoundForEachParameter) {
  const auto violations = Without(2, TaskKind::kGatherUpdated);
  EXPECT_EQ(Rules(violations), (std::vector<Rule>{Rule::kMissingUpdate, Rule::kMissingUpdate}));
  EXPECT_EQ(violations[0].message, "the update of w1 is gathered 0 times, expected once");
}

/// Violations of a ZeRO-3 schedule that gathers from peers' memory, without its n-th barrier.
std::vector<Violation> WithoutBarrier(std::size_t n) {
  PlanSpec spec = TinySpec(3);
  spec.options.gather_engine = Engine::kCopyEngine;
  const Schedule schedule = LowerTiny(spec, TwoLayers());
  auto tasks = TakeApart(schedule);
  std::size_t found = 0;
  std::erase_if(tasks, [&](const EditableTask& task) {
    return task.draft.kind == TaskKind::kBarrier && found++ == n;
  });
  EXPECT_EQ(found, 2U);
  return Verify(PutTogether(schedule, tasks), TwoLayers());
}

TEST(VerifyTest, PeersThatStillReadWhatChangesAreFound) {
  const auto violations = WithoutBarrier(0);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, Rule::kReadsPeersTooEarly);
  EXPECT_THAT(violations[0].message,
              testing::HasSubstr("may change parameters that peers still gather"));
}

TEST(VerifyTest, PeersThatHaveNotUpdatedYetAreFound) {
  const auto violations = WithoutBarrier(1);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, Rule::kReadsPeersTooEarly);
  EXPECT_THAT(violations[0].message,
              testing::HasSubstr("may gather parameters that peers have not updated yet"));
}

// One flat tensor a dtype: the gather of one says nothing about the other.
TEST(VerifyTest, UpdateOfOneDTypeIsNotThatOfAnother) {
  const Graph graph = ParseGraphText(R"(
graph mixed 1 tokens
param a bfloat16[4]
param b float32[4]
forward
  l: float32[] = my::loss(a, b)
  loss l
backward
  tangent t: float32[] of l
  ga: bfloat16[4] = my::grad(t)
  gb: float32[4] = my::grad(t)
  gradient a = ga
  gradient b = gb
)");
  const Schedule schedule = LowerTiny(TinySpec(1), graph);
  auto tasks = TakeApart(schedule);
  tasks.erase(tasks.begin() +
              static_cast<std::ptrdiff_t>(NthTask(schedule, TaskKind::kGatherUpdated).index()));
  const auto violations = Verify(PutTogether(schedule, tasks), graph);
  ASSERT_EQ(Rules(violations), std::vector<Rule>{Rule::kMissingUpdate});
  EXPECT_EQ(violations[0].message, "the update of a is gathered 0 times, expected once");
}

}  // namespace
}  // namespace dcsim
