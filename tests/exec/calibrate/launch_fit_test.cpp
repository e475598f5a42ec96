#include "exec/calibrate/launch_fit.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"
#include "model/ir/profile_reader.h"
#include "tests/support/compiled_document.h"
#include "tests/support/source_folder.h"
#include "tests/support/workloads.h"
#include "tools/common/file.h"
#include "tools/common/load.h"

namespace dcsim::exec {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr TritonRates kKnown{.pointwise = 0.83,
                             .tiles = 0.61,
                             .reduction = 0.7,
                             .outer_reduction = 0.52,
                             .persistent_reduction = 0.9,
                             .mixed_reduction = 0.44,
                             .full_threads = 0.4,
                             .trigonometric_per_second = 407e9,
                             .error_functions_per_second = 501e9,
                             .exponentials_per_second = 912e9,
                             .online_softmax_per_second = 692e9,
                             .start = Duration::FromNs(1700)};

GpuSpec Gpu() {
  GpuSpec gpu;
  gpu.memory_bandwidth = BytesPerSecond(2'000'000'000'000);
  gpu.multiprocessors = 100;
  gpu.bandwidth_efficiency = 0.9;
  return gpu;
}

/// So many thousand elements of four bytes, of a kind.
LaunchWork Moving(double TritonRates::*share, std::int64_t thousands) {
  LaunchWork work;
  work.share = share;
  work.elements = thousands * 1000;
  work.bytes = Bytes(work.elements * 4);
  work.threads = work.elements / 4;
  return work;
}

LaunchWork Computing(const KernelMath& math, std::int64_t thousands) {
  LaunchWork work = Moving(&TritonRates::pointwise, thousands);
  work.bytes = Bytes(work.elements);
  work.math = math;
  return work;
}

/// What launches take at these rates, each twice.
WorkloadLaunches Made(const std::vector<LaunchWork>& works, const TritonRates& rates) {
  WorkloadLaunches launches;
  for (const LaunchWork& work : works) {
    const double seconds = LaunchWorkSeconds(work, rates, Gpu());
    launches.samples.push_back({work, seconds, 2});
    launches.seconds += 2 * seconds;
  }
  return launches;
}

std::vector<LaunchWork> Works(std::int64_t size) {
  std::vector<LaunchWork> works;
  for (double TritonRates::*share :
       {&TritonRates::pointwise, &TritonRates::tiles, &TritonRates::reduction,
        &TritonRates::outer_reduction, &TritonRates::persistent_reduction,
        &TritonRates::mixed_reduction}) {
    for (const std::int64_t thousands : {10 * size, 100 * size, 10'000 * size}) {
      works.push_back(Moving(share, thousands));
    }
  }
  // A GELU's backward has an exponential beside the error function.
  works.push_back(Computing({.trigonometric_calls = 2}, 5'000 * size));
  works.push_back(Computing({.error_functions = 1}, 5'000 * size));
  works.push_back(Computing({.error_functions = 1, .exponentials = 1}, 7'000 * size));
  works.push_back(Computing({.exponentials = 4}, 5'000 * size));
  works.push_back(Computing({.exponentials = 2, .combines_softmax = true}, 5'000 * size));
  return works;
}

std::vector<std::string> NotShown(const LaunchFit& fit) {
  std::vector<std::string> names;
  for (const RateEvidence& each : fit.evidence) {
    if (!each.shown) {
      names.emplace_back(each.rate);
    }
  }
  return names;
}

std::vector<double> Numbers(const TritonRates& rates) {
  return {rates.pointwise,
          rates.tiles,
          rates.reduction,
          rates.outer_reduction,
          rates.persistent_reduction,
          rates.mixed_reduction,
          rates.full_threads,
          rates.trigonometric_per_second,
          rates.error_functions_per_second,
          rates.exponentials_per_second,
          rates.online_softmax_per_second,
          rates.start.seconds()};
}

TEST(LaunchFitTest, KnownRatesAreFound) {
  const LaunchFit fit = FitLaunches({Made(Works(1), kKnown), Made(Works(3), kKnown)}, Gpu());
  EXPECT_EQ(Numbers(fit.rates), Numbers(kKnown));
  EXPECT_THAT(NotShown(fit), IsEmpty());
  EXPECT_NEAR(fit.error, 0, 1e-12);
  EXPECT_NEAR(fit.left_out_error.value_or(1), 0, 1e-12);
}

TEST(LaunchFitTest, RatesOfTheGpuDoNotMatterWhereLaunchesTell) {
  GpuSpec gpu = Gpu();
  TritonRates others = kKnown;
  others.start = Duration::FromNs(100);
  others.exponentials_per_second = 1e10;
  others.tiles = 0.1;
  gpu.triton = std::make_shared<TritonRates>(others);
  EXPECT_EQ(Numbers(FitLaunches({Made(Works(1), kKnown)}, gpu).rates), Numbers(kKnown));
}

TEST(LaunchFitTest, EvidenceCountsLaunchesAndTheirTime) {
  const WorkloadLaunches made =
      Made({Moving(&TritonRates::pointwise, 1'000'000), Moving(&TritonRates::pointwise, 2'000'000),
            Moving(&TritonRates::tiles, 1'000'000)},
           kKnown);
  const LaunchFit fit = FitLaunches({made}, Gpu());
  EXPECT_EQ(fit.evidence[0].rate, "pointwise");
  EXPECT_EQ(fit.evidence[0].launches, 2U);
  EXPECT_NEAR(fit.evidence[0].share,
              2 * (made.samples[0].seconds + made.samples[1].seconds) / made.seconds, 1e-12);
  EXPECT_EQ(fit.evidence.back().rate, "start");
  EXPECT_EQ(fit.evidence.back().launches, 3U);
}

const std::vector<LaunchWork> kPointwiseOnly = {Moving(&TritonRates::pointwise, 1'000),
                                                Moving(&TritonRates::pointwise, 100'000)};

TEST(LaunchFitTest, WhatNoLaunchShowsIsTheGpus) {
  GpuSpec gpu = Gpu();
  TritonRates others = kKnown;
  others.pointwise = 0.5;
  others.start = Duration::FromNs(300);
  gpu.triton = std::make_shared<TritonRates>(others);
  const LaunchFit fit = FitLaunches({Made(kPointwiseOnly, kKnown)}, gpu);
  EXPECT_THAT(NotShown(fit), ElementsAre("tiles", "reduction", "outer_reduction",
                                         "persistent_reduction", "mixed_reduction", "full_threads",
                                         "trigonometric_per_second", "error_functions_per_second",
                                         "exponentials_per_second", "online_softmax_per_second"));
  EXPECT_EQ(Numbers(fit.rates), Numbers(kKnown));
}

TEST(LaunchFitTest, WithoutTheGpusItCostsWhatItCostsWithoutRates) {
  const LaunchFit fit = FitLaunches({Made(kPointwiseOnly, kKnown)}, Gpu());
  EXPECT_EQ(Numbers(fit.rates), (std::vector<double>{0.83, 0.9, 0.9, 0.9, 0.9, 0.9, 0.05, 1e13,
                                                     1e13, 1e13, 1e13, kKnown.start.seconds()}));
}

// At 1e13 a second they hide behind what the launches move.
TEST(LaunchFitTest, FunctionsBehindTheirBytesAreNotShown) {
  TritonRates fast = kKnown;
  fast.exponentials_per_second = 1e13;
  std::vector<LaunchWork> works = kPointwiseOnly;
  works.push_back(Computing({.exponentials = 1}, 5'000));
  const LaunchFit fit = FitLaunches({Made(works, fast)}, Gpu());
  EXPECT_THAT(NotShown(fit), testing::Contains("exponentials_per_second"));
  EXPECT_EQ(fit.evidence[9].launches, 1U);
}

// A softmax of 1 us of a step of 23 ms says nothing, whatever it took.
TEST(LaunchFitTest, LaunchesOfNoWeightShowNothing) {
  std::vector<LaunchWork> works = {Moving(&TritonRates::pointwise, 10'000'000)};
  works.push_back(Computing({.combines_softmax = true}, 1));
  WorkloadLaunches made = Made(works, kKnown);
  made.samples.back().seconds *= 2;
  EXPECT_THAT(NotShown(FitLaunches({made}, Gpu())), testing::Contains("online_softmax_per_second"));
}

// By the other one's share each takes half of, or twice, the time.
TEST(LaunchFitTest, ErrorsOfWorkloadsThatAreLeftOut) {
  TritonRates slow = kKnown;
  slow.pointwise = kKnown.pointwise / 2;
  const std::vector<LaunchWork> works = {Moving(&TritonRates::pointwise, 10'000'000)};
  const std::vector<WorkloadLaunches> both = {Made(works, kKnown), Made(works, slow)};
  const LaunchFit fit = FitLaunches(both, Gpu());
  ASSERT_TRUE(fit.left_out_error.has_value());
  EXPECT_NEAR(*fit.left_out_error, (1 + 0.5) / 2, 0.02);
  EXPECT_FALSE(FitLaunches({both.front()}, Gpu()).left_out_error.has_value());
  EXPECT_NEAR(TritonTimeError(both, kKnown, Gpu()), 0.25, 0.001);
}

TEST(LaunchFitTest, WithoutLaunchesThereIsNothingToFit) {
  EXPECT_THROW(FitLaunches({}, Gpu()), Error);
  EXPECT_THROW(FitLaunches({WorkloadLaunches{}}, Gpu()), Error);
}

// Three launches of relu's kernel: two of 16 elements, of which none is the median, one of 32.
TEST(LaunchFitTest, EqualLaunchesAreOne) {
  Graph graph = CompiledGraph();
  const Op relu = graph.ops[1];
  graph.ops.push_back(relu);
  graph.ops.push_back(relu);
  graph.ops.back().arguments[1] = std::int64_t{32};
  Profile profile;
  const auto add = [&profile](std::size_t op, std::int64_t ns) {
    profile.ops.push_back({OpId(op), Duration::FromNs(ns), {}, {}, {}, {}});
  };
  add(0, 9'000);  // the product
  add(1, 1'000);
  add(graph.ops.size() - 2, 3'000);
  add(graph.ops.size() - 1, 5'000);
  const WorkloadLaunches launches = LaunchesOf(graph, profile, Gpu());
  ASSERT_EQ(launches.samples.size(), 2U);
  EXPECT_DOUBLE_EQ(launches.samples[0].seconds, 2e-6);
  EXPECT_EQ(launches.samples[0].count, 2U);
  EXPECT_EQ(launches.samples[0].work.elements, 16);
  EXPECT_EQ(launches.samples[1].work.elements, 32);
  EXPECT_DOUBLE_EQ(launches.seconds, 9e-6);
}

/// Adds what a form of a workload launches, where a profile on an H200 has its times.
void AddProfiled(const std::string& name, int stage, const GpuSpec& gpu, WorkloadLaunches& to) {
  const std::string form = stage == 3 ? "zero3" : "zero12";
  const std::string file =
      SourceFolder() + "/traces/" + name + "/profile-h200-inductor-" + form + ".json.xz";
  if (FileExists(file)) {
    const Graph graph = CompiledWorkloadGraph(name, stage);
    AddLaunches(LaunchesOf(graph, ParseProfile(ReadFile(file), graph, file), gpu), to);
  }
}

/// Every second of the workloads of which a compiled form was profiled on an H200, from `first` on.
std::vector<WorkloadLaunches> Profiled(std::size_t first, const GpuSpec& gpu) {
  std::vector<WorkloadLaunches> launches;
  std::size_t place = 0;
  for (const std::string& name : WorkloadNames()) {
    WorkloadLaunches own;
    AddProfiled(name, 3, gpu, own);
    AddProfiled(name, 1, gpu, own);
    if (!own.samples.empty() && place++ % 2 == first) {
      launches.push_back(std::move(own));
    }
  }
  return launches;
}

// Fourteen workloads each. Of the second half yolos-base is half off, by its bicubic
// interpolation.
TEST(LaunchFitTest, HalfOfTheWorkloadsTellTheTimeOfTheOthers) {
  GpuSpec gpu = LoadGpu("h200.yaml", SourceFolder() + "/configs/gpus", "h200");
  gpu.triton = nullptr;
  const std::vector<WorkloadLaunches> first = Profiled(0, gpu);
  const std::vector<WorkloadLaunches> second = Profiled(1, gpu);
  EXPECT_LT(TritonTimeError(second, FitLaunches(first, gpu).rates, gpu), 0.084);
  EXPECT_LT(TritonTimeError(first, FitLaunches(second, gpu).rates, gpu), 0.06);
}

}  // namespace
}  // namespace dcsim::exec
