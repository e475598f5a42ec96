#include "tools/views/result_text.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/sim/test_cluster.h"

namespace dcsim {
namespace {

Result SomeResult() {
  Result result;
  result.workload = "some-model";
  result.plan = {{"policy", "plain-1"}, {"stage", 3}};
  result.gpus = 4;
  result.step_time = Duration::FromMs(200);
  result.forward = Duration::FromMs(50);
  result.backward = Duration::FromMs(120);
  result.optimizer = Duration::FromMs(30);
  result.compute = Duration::FromMs(150);
  result.exposed_communication = Duration::FromMs(30);
  result.tokens_per_second = 123456.4;
  result.model_flops_utilisation = 0.4567;
  result.peak_reserved = Bytes::GiB(12);
  result.peak_reserved_most = Bytes::GiB(12);
  result.capacity = Bytes::GiB(63);
  result.outside_allocator = Bytes::GiB(1);
  result.peak_allocated = Bytes::GiB(11);
  result.peak_live = Bytes::GiB(10);
  result.allocated_after_step = Bytes::GiB(5);
  result.peak_classes = {{BufferClass::kParameter, Bytes::GiB(1)},
                         {BufferClass::kActivation, Bytes::GiB(9)}};
  CollectiveTotals gathers;
  gathers.calls = 1200;
  gathers.launches = 1200;
  gathers.payload = Bytes::GiB(4);
  gathers.wire = Bytes::GiB(3);
  gathers.busy = Duration::FromMs(40);
  CollectiveTotals reductions = gathers;
  reductions.kind = CollectiveKind::kReduceScatter;
  reductions.launches = 10;
  result.collectives = {gathers, reductions};
  result.sources = {0.25, 0.125, 0.625};
  return result;
}

TEST(ResultTextTest, CompletedStepIsATable) {
  EXPECT_EQ(PrintResultText(SomeResult(), HandCluster()),
            R"(fits: 12.0 of 63.0 GiB reserved
some-model, ZeRO-3 (plain-1, aten), 4 x Hand GPU

step time                    200 ms   30,864 tokens/s/GPU, 45.7 % MFU
  forward                   50.0 ms   25.0 % of the step
  backward                   120 ms   60.0 % of the step
  optimizer                 30.0 ms   15.0 % of the step
exposed communication       30.0 ms   15.0 % of the step
compute                      150 ms   75.0 % of the step
peak memory, reserved      12.0 GiB   of 63.0 GiB that Hand GPU leaves to tensors
  allocated                11.0 GiB
  live                     10.0 GiB   activations 9.00 GiB, parameters 1.00 GiB
after the step             5.00 GiB   allocated
on the GPU                 13.0 GiB   with 1.00 GiB of context, modules, NCCL
collectives, busy time
  all_gather                40.0 ms   1,200 calls, 4.00 GiB payload, 3.00 GiB sent by each GPU
  reduce_scatter            40.0 ms   1,200 calls in 10 launches, 4.00 GiB payload, 3.00 GiB sent by each GPU
device time by source        25.0 %   measured, 12.5 % interpolated, 62.5 % estimated
)");
}

TEST(ResultTextTest, RetriesAreSaid) {
  Result result = SomeResult();
  result.allocator_retries = 3;
  EXPECT_NE(PrintResultText(result, HandCluster())
                .find("allocator retries                 3   the cache was flushed to make room\n"),
            std::string::npos);
}

// Five classes by size; the other two, of 1 and 2 GiB, together.
TEST(ResultTextTest, SmallClassesAtThePeakAreAddedUp) {
  Result result = SomeResult();
  result.peak_classes.clear();
  for (int i = 1; i <= 7; ++i) {
    result.peak_classes.push_back({static_cast<BufferClass>(i), Bytes::GiB(i)});
  }
  EXPECT_NE(PrintResultText(result, HandCluster())
                .find("activations 7.00 GiB, reduce buckets 6.00 GiB, gradient partition 5.00 GiB, "
                      "gradients 4.00 GiB, optimizer states 3.00 GiB, others 3.00 GiB\n"),
            std::string::npos);
}

TEST(ResultTextTest, StepWithoutCollectivesHasNoTableOfThem) {
  Result result = SomeResult();
  result.collectives.clear();
  EXPECT_EQ(PrintResultText(result, HandCluster()).find("collectives"), std::string::npos);
}

TEST(ResultTextTest, StepWithoutTimeHasNoShareOfIt) {
  Result result = SomeResult();
  result.step_time = Duration();
  result.compute = Duration();
  EXPECT_NE(PrintResultText(result, HandCluster()).find("0.0 % of the step"), std::string::npos);
}

TEST(ResultTextTest, BoundStandsBesideTheTime) {
  Result result = SomeResult();
  result.bound = Duration::FromMs(7);
  EXPECT_NE(PrintResultText(result, HandCluster())
                .find("200 ms   +/- 7.00 ms (90 %), 30,864 tokens/s/GPU, 45.7 % MFU\n"),
            std::string::npos);
}

TEST(ResultTextTest, PartOfAnotherUnitKeepsItsOwn) {
  Result result = SomeResult();
  result.peak_reserved = Bytes::MiB(900);
  EXPECT_TRUE(
      PrintResultText(result, HandCluster()).starts_with("fits: 900 MiB of 63.0 GiB reserved\n"));
}

TEST(ResultTextTest, StepThatMayNeedMoreThanThereIsDoesNotFitForSure) {
  Result result = SomeResult();
  result.peak_reserved_most = Bytes::GiB(80);
  EXPECT_TRUE(
      PrintResultText(result, HandCluster())
          .starts_with("may run out of memory: 12.0 of 63.0 GiB reserved, at most 80.0 GiB\n"));
}

TEST(ResultTextTest, OutOfMemorySaysWhoAskedForWhat) {
  Result result = SomeResult();
  result.outcome = "out_of_memory";
  result.stop = StopReport{"aten::mm layers.3", Bytes::GiB(2), 0, "aten::mm", "activations", {}};
  EXPECT_EQ(PrintResultText(result, HandCluster()),
            R"(does not fit: aten::mm layers.3 asks for 2.00 GiB more, 12.0 of 63.0 GiB reserved
some-model, ZeRO-3 (plain-1, aten), 4 x Hand GPU

asked for                  2.00 GiB   activations, by aten::mm layers.3, in the first step
reserved then              12.0 GiB   of 63.0 GiB that Hand GPU leaves to tensors
  allocated                11.0 GiB
  live                     10.0 GiB   activations 9.00 GiB, parameters 1.00 GiB
outside the allocator      1.00 GiB   context, modules, NCCL
)");
}

TEST(ResultTextTest, WhatCannotBeginSaysWhatItNeeds) {
  Result result = SomeResult();
  result.outcome = "out_of_memory";
  result.peak_reserved = Bytes(0);
  result.stop = StopReport{"allocation of weights and optimizer states", Bytes::GiB(100)};
  result.stop->needed = {{BufferClass::kParameter, Bytes::GiB(31)},
                         {BufferClass::kMaster, Bytes::GiB(100)}};
  EXPECT_EQ(
      PrintResultText(result, HandCluster()),
      R"(does not fit: needs 131 GiB of weights and states before the first step, there are 63.0 GiB
some-model, ZeRO-3 (plain-1, aten), 4 x Hand GPU

before the first step       131 GiB   master weights 100 GiB, parameters 31.0 GiB
there is                   63.0 GiB   that Hand GPU leaves to tensors
outside the allocator      1.00 GiB   context, modules, NCCL
)");
}

TEST(ResultTextTest, DeadlockNamesTheTask) {
  Result result = SomeResult();
  result.outcome = "deadlock";
  result.stop = StopReport{"wait for all-gather w1", Bytes(0), 0};
  EXPECT_EQ(PrintResultText(result, HandCluster()),
            "deadlock: wait for all-gather w1 can never start\n"
            "some-model, ZeRO-3 (plain-1, aten), 4 x Hand GPU\n\n");
}

}  // namespace
}  // namespace dcsim
