// DeepSpeed's eager gradient buckets (docs/design/schedules.md) on TwoLayers and two ranks: w1 has
// 15 elements (30 bytes), w2 5 (10 bytes); gradients come as w2, w1. One rank's partition of the 20
// elements is 10: w1's first ten belong to rank 0, its last five and w2 to rank 1.

#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ir/graph_text.h"
#include "model/passes/verify.h"
#include "tests/support/tiny_graphs.h"

namespace dcsim {
namespace {

PlanSpec EagerSpec(int stage) {
  PlanSpec spec = TinySpec(stage);
  spec.options.gradient_buckets = GradientBuckets::kEager;
  return spec;
}

Schedule LowerRight(const PlanSpec& spec) {
  Schedule schedule = LowerTiny(spec, TwoLayers());
  EXPECT_THAT(Verify(schedule, TwoLayers()), testing::IsEmpty());
  return schedule;
}

/// The tasks of reduction in order, each with its stream: "c" compute, "r" reduce.
std::vector<std::string> ReductionTasks(const Schedule& schedule) {
  const std::vector<TaskKind> kinds = {TaskKind::kReduceGradCopy, TaskKind::kPreDivide,
                                       TaskKind::kFlatten,        TaskKind::kReduce,
                                       TaskKind::kUnflatten,      TaskKind::kStoreReduced};
  std::vector<std::string> tasks;
  for (const Task& task : schedule.tasks()) {
    if (std::find(kinds.begin(), kinds.end(), task.kind) != kinds.end()) {
      const bool compute = task.stream == static_cast<std::uint8_t>(StreamRole::kCompute);
      tasks.push_back((compute ? "c " : "r ") + std::string(TaskKindName(task.kind)));
    }
  }
  return tasks;
}

std::vector<std::int64_t> BytesOf(const Schedule& schedule, BufferClass buffer_class) {
  std::vector<std::int64_t> bytes;
  for (const Buffer& buffer : schedule.buffers()) {
    if (buffer.buffer_class == buffer_class) {
      bytes.push_back(buffer.bytes.count());
    }
  }
  return bytes;
}

std::vector<Collective> Reductions(const Schedule& schedule) {
  std::vector<Collective> collectives;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    if (schedule.task(TaskId(i)).kind == TaskKind::kReduce) {
      collectives.push_back(*schedule.FindCollective(TaskId(i)));
    }
  }
  return collectives;
}

// Both gradients are copied into the buffer of 1000 elements. Owners in the bucket: w2 rank 1, w1
// rank 0 then 1: three runs, so the all-reduce goes over a flat copy of 20 elements, and back.
TEST(EagerBucketTest, Zero2ReducesOneFlatCopyWhereSeveralRanksOwnParts) {
  const Schedule schedule = LowerRight(EagerSpec(2));
  EXPECT_THAT(ReductionTasks(schedule),
              testing::ElementsAre("c reduce-grad-copy", "c reduce-grad-copy", "c pre-divide",
                                   "c flatten", "r reduce", "c unflatten", "c store-reduced"));
  const Collective reduction = Reductions(schedule).at(0);
  EXPECT_EQ(reduction.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(reduction.launches(), 1U);
  EXPECT_EQ(reduction.payload(), Bytes(40));
  EXPECT_THAT(BytesOf(schedule, BufferClass::kReduceBucket), testing::ElementsAre(2000));
  EXPECT_THAT(BytesOf(schedule, BufferClass::kGradientPartition), testing::ElementsAre(20));
}

// A bucket of 15 elements: w2 fills 5; w1 does not fit behind it, so w2 is flushed alone. It
// belongs to rank 1 whole: in place. w1 then has two owners: a flat copy.
TEST(EagerBucketTest, OneOwnerIsReducedInPlace) {
  PlanSpec spec = EagerSpec(2);
  spec.options.reduce_bucket = 15;
  EXPECT_THAT(ReductionTasks(LowerRight(spec)),
              testing::ElementsAre("c reduce-grad-copy", "c pre-divide", "r reduce",
                                   "c store-reduced", "c reduce-grad-copy", "c pre-divide",
                                   "c flatten", "r reduce", "c unflatten", "c store-reduced"));
}

// Of 10 elements: w1's 15 never fit and stay where the backward wrote them.
TEST(EagerBucketTest, AGradientLargerThanTheBufferIsNotCopied) {
  PlanSpec spec = EagerSpec(2);
  spec.options.reduce_bucket = 10;
  EXPECT_THAT(ReductionTasks(LowerRight(spec)),
              testing::ElementsAre("c reduce-grad-copy", "c pre-divide", "r reduce",
                                   "c store-reduced", "c pre-divide", "c flatten", "r reduce",
                                   "c unflatten", "c store-reduced"));
}

TEST(EagerBucketTest, WithoutABufferGradientsAreFlattenedAndDividedThere) {
  PlanSpec spec = EagerSpec(2);
  spec.options.contiguous_gradients = false;
  const Schedule schedule = LowerRight(spec);
  EXPECT_THAT(ReductionTasks(schedule),
              testing::ElementsAre("c flatten", "c pre-divide", "r reduce", "c unflatten",
                                   "c store-reduced"));
  EXPECT_THAT(BytesOf(schedule, BufferClass::kReduceBucket), testing::IsEmpty());
}

// ZeRO-1's hooks do nothing but make the buffer; behind the backward the parameters come in the
// order of the flat tensor: w1, then w2.
TEST(EagerBucketTest, Zero1ReducesBehindTheBackwardInTheOrderOfTheFlatTensor) {
  PlanSpec spec = EagerSpec(1);
  spec.options.gradient_accumulation_steps = 2;
  const Schedule schedule = LowerRight(spec);
  ASSERT_EQ(Reductions(schedule).size(), 1U);
  EXPECT_EQ(Reductions(schedule)[0].calls,
            (std::vector<CollectiveCall>{{ParamId(0), 15, 0}, {ParamId(1), 5, 15}}));
  std::size_t last_op = 0;
  std::size_t allocation = schedule.task_count();
  std::size_t first_copy = schedule.task_count();
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const TaskKind kind = schedule.task(TaskId(i)).kind;
    last_op = kind == TaskKind::kCompute ? i : last_op;
    allocation = kind == TaskKind::kAllocate ? std::min(allocation, i) : allocation;
    first_copy = kind == TaskKind::kReduceGradCopy ? std::min(first_copy, i) : first_copy;
  }
  EXPECT_LT(last_op, first_copy);
  EXPECT_EQ(schedule.task(TaskId(allocation)).micro_step, 0);  // the window's first backward
}

// Each backward reduce-scatters one flat tensor of both gradients padded for two ranks, 16 + 6
// elements, in place, on the reduce stream; the second adds.
TEST(EagerBucketTest, Zero3ScattersOneFlatTensorABackwardOnItsOwnStream) {
  PlanSpec spec = EagerSpec(3);
  spec.options.gradient_accumulation_steps = 2;
  const Schedule schedule = LowerRight(spec);
  const std::vector<std::string> backward = {"r reduce-grad-copy", "r reduce-grad-copy",
                                             "r flatten",          "r pre-divide",
                                             "r reduce",           "r store-reduced"};
  std::vector<std::string> both = backward;
  both.insert(both.end(), backward.begin(), backward.end());
  EXPECT_EQ(ReductionTasks(schedule), both);
  EXPECT_EQ(Reductions(schedule)[0].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(Reductions(schedule)[0].payload(), Bytes(44));
  EXPECT_TRUE(std::any_of(
      schedule.residents().begin(), schedule.residents().end(),
      [&](BufferId id) { return schedule.buffer(id).buffer_class == BufferClass::kReduceBucket; }));
}

/// `count` weights of 15 elements, each used once: y = x w in the forward, g = x t in the backward.
Graph ManyWeights(int count) {
  std::string weights = "graph many 2 tokens\n";
  std::string forward = "input x bfloat16[2,3]\nforward\n";
  std::string backward =
      "backward of 0\n  tangent t: bfloat16[] of l\n  f: bfloat16[2,5] = aten::fill(t)\n";
  std::string gradients;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    weights.append("param w").append(n).append(" bfloat16[3,5]\n");
    forward.append("  y").append(n).append(": bfloat16[2,5] = aten::mm(x, w").append(n + ")\n");
    backward.append("  g").append(n).append(": bfloat16[3,5] = aten::mm(x, f)\n");
    gradients.append("  gradient w").append(n).append(" = g").append(n + "\n");
  }
  forward += "  l: bfloat16[] = aten::sum(y0)\n  loss l\n";
  return ParseGraphText(weights + forward + backward + gradients);
}

/// Kernels of the task of a kind.
std::vector<std::uint32_t> LaunchesOf(const Schedule& schedule, TaskKind kind) {
  std::vector<std::uint32_t> launches;
  for (const Task& task : schedule.tasks()) {
    if (task.kind == kind) {
      launches.push_back(schedule.work(task.work).launches);
    }
  }
  return launches;
}

// 65 gradients, of which each rank of two gets its part: 130 parts. at::cat takes 128 at a time,
// copies go part by part. ZeRO-2 has a part a gradient, and brings each back with a copy.
TEST(EagerBucketTest, FlatteningTakesAKernelForManyPartsOrForEach) {
  const Graph graph = ManyWeights(65);
  for (const auto& [flatten, zero3, zero2] :
       {std::tuple{Flatten::kConcatenate, 2U, 1U}, std::tuple{Flatten::kCopy, 130U, 65U}}) {
    PlanSpec spec = EagerSpec(3);
    spec.options.flatten = flatten;
    EXPECT_THAT(LaunchesOf(LowerTiny(spec, graph), TaskKind::kFlatten),
                testing::ElementsAre(zero3));
    spec.options.stage = 2;
    const Schedule schedule = LowerTiny(spec, graph);
    EXPECT_THAT(LaunchesOf(schedule, TaskKind::kFlatten), testing::ElementsAre(zero2));
    EXPECT_THAT(LaunchesOf(schedule, TaskKind::kUnflatten), testing::ElementsAre(65U));
  }
}

// The second gradient is copied into a buffer of its own while the first is reduced.
TEST(EagerBucketTest, OverlapFillsASecondBufferWhileTheFirstIsReduced) {
  PlanSpec spec = EagerSpec(2);
  spec.options.reduce_bucket = 15;
  spec.options.overlap_comm = true;
  const Schedule schedule = LowerRight(spec);
  EXPECT_THAT(ReductionTasks(schedule),
              testing::ElementsAre("c reduce-grad-copy", "r pre-divide", "r reduce",
                                   "r store-reduced", "c reduce-grad-copy", "r pre-divide",
                                   "r flatten", "r reduce", "r unflatten", "r store-reduced"));
  EXPECT_THAT(BytesOf(schedule, BufferClass::kReduceBucket), testing::ElementsAre(30, 30));
  std::vector<BufferId> filled;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    for (const BufferUse& use : schedule.uses(TaskId(i))) {
      if (schedule.task(TaskId(i)).kind == TaskKind::kReduceGradCopy && use.writes) {
        filled.push_back(use.buffer);
      }
    }
  }
  ASSERT_EQ(filled.size(), 2U);
  EXPECT_NE(filled[0], filled[1]);
}

// Of three reductions the third's bucket is the first's, which compute has waited for; the second
// is still in flight then.
TEST(EagerBucketTest, OverlapWaitsForTheReductionBeforeTheLast) {
  PlanSpec spec = EagerSpec(2);
  spec.options.gradient_accumulation_steps = 2;
  spec.options.reduce_bucket = 15;
  spec.options.overlap_comm = true;
  const Schedule schedule = LowerRight(spec);
  std::vector<TaskId> waited;
  std::vector<TaskId> stores;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    const Task& task = schedule.task(TaskId(i));
    if (task.kind == TaskKind::kStoreReduced) {
      stores.push_back(TaskId(i));
    } else if (task.kind == TaskKind::kWait) {
      const auto waits = schedule.waits(TaskId(i));
      waited.insert(waited.end(), waits.begin(), waits.end());
    }
  }
  ASSERT_EQ(stores.size(), 4U);  // two a micro-step; its end waits for the second
  EXPECT_THAT(waited, testing::IsSupersetOf({stores[0], stores[2]}));
  EXPECT_THAT(waited, testing::Not(testing::Contains(stores[3])));
}

// A gradient larger than the bucket is reduced where it is: the compute stream waits for that
// before it takes its memory again, or the end of the backward does.
TEST(EagerBucketTest, OverlapKeepsALargeGradientUntilComputeHasWaited) {
  PlanSpec spec = EagerSpec(2);
  spec.options.reduce_bucket = 4;
  spec.options.overlap_comm = true;
  const Schedule schedule = LowerRight(spec);
  std::vector<TaskKind> freeing;
  for (std::size_t i = 0; i < schedule.task_count(); ++i) {
    for (const MemoryStep& step : schedule.memory(TaskId(i))) {
      if (step.frees && schedule.buffer(step.buffer).buffer_class == BufferClass::kGradient) {
        freeing.push_back(schedule.task(TaskId(i)).kind);
      }
    }
  }
  EXPECT_THAT(freeing, testing::ElementsAre(TaskKind::kWait, TaskKind::kEndBackward));
}

// The backward of the boundary copies gradients as they come: w2, then w1, added to those of the
// micro-step before.
TEST(EagerBucketTest, OverlapReducesZero1InItsLastBackward) {
  PlanSpec spec = EagerSpec(1);
  spec.options.gradient_accumulation_steps = 2;
  spec.options.overlap_comm = true;
  const Schedule schedule = LowerRight(spec);
  ASSERT_EQ(Reductions(schedule).size(), 1U);
  EXPECT_EQ(Reductions(schedule)[0].calls,
            (std::vector<CollectiveCall>{{ParamId(1), 5, 0}, {ParamId(0), 15, 5}}));
  EXPECT_THAT(BytesOf(schedule, BufferClass::kReduceBucket), testing::ElementsAre(2000, 2000));
}

TEST(EagerBucketTest, EveryConfigurationIsRight) {
  for (const int stage : {1, 2, 3}) {
    for (const std::int64_t bucket : {1, 10, 15, 1000}) {
      for (const auto& [contiguous, overlap] :
           {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
        for (const auto reduction :
             {GradientReduction::kEachBackward, GradientReduction::kCoalesced}) {
          PlanSpec spec = EagerSpec(stage);
          spec.options.gradient_accumulation_steps = 3;
          spec.options.reduce_bucket = bucket;
          spec.options.contiguous_gradients = contiguous;
          spec.options.overlap_comm = overlap && stage != 3;
          spec.options.gradient_reduction = reduction;
          LowerRight(spec);
        }
      }
    }
  }
}

}  // namespace
}  // namespace dcsim
