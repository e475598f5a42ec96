#include "exec/calibrate/contention_fit.h"

#include <vector>

#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

constexpr auto kGather = DeviceUse::kCollective;
constexpr ContentionMachine kMachine{132, Bytes::MiB(50), 2};

ContentionSample Sample(DeviceUse use,
                        std::int64_t tiles,
                        std::int64_t alone_us,
                        double speed,
                        std::int64_t beside_alone_us,
                        std::int64_t beside_us) {
  ContentionSample sample;
  sample.use = use;
  sample.tiles = tiles;
  sample.compute_alone = Duration::FromUs(alone_us);
  sample.compute_speed = speed;
  sample.beside_use = kGather;
  sample.beside_alone = Duration::FromUs(beside_alone_us);
  sample.beside_time = Duration::FromUs(beside_us);
  return sample;
}

std::int64_t RateOf(const ContentionFit& fit, DeviceUse work, DeviceUse beside) {
  return fit.contention.RateOf(work, beside).permille();
}

// On 132 multiprocessors of which s are gone: 128 tiles take 2 waves for 1 whatever s from 5 on;
// 512 take ceil(512 / (132 - s)) for 4: 5 below s = 30, 6 from 30 to 46; 768 take for 6: 8 from 23
// to 36. A speed of 4/6 and one of 6/8 leave s = 30 to 36, of which the first is taken.
TEST(ContentionFitTest, ProductsTellHowManyMultiprocessorsACollectiveTakes) {
  const std::vector<ContentionSample> samples = {
      Sample(DeviceUse::kMatmul, 128, 90, 0.5, 300, 300),
      Sample(DeviceUse::kMatmul, 512, 170, 4.0 / 6, 300, 300),
      Sample(DeviceUse::kMatmul, 768, 260, 6.0 / 8, 300, 300)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.collective_multiprocessors, 30);
  EXPECT_NEAR(fit.compute_error, 0, 1e-12);
}

// A kernel of t us beside a collective takes t + min(t / 2, 2 + 0.2 t): speeds of 4, 20 and 100 us
// 4 / 6 (the half binds), 20 / 26 and 100 / 122.
TEST(ContentionFitTest, StreamingKernelsLoseAShareAndAFixedTime) {
  const std::vector<ContentionSample> samples = {
      Sample(DeviceUse::kStreaming, 0, 4, 4.0 / 6, 300, 300),
      Sample(DeviceUse::kStreaming, 0, 20, 20.0 / 26, 300, 300),
      Sample(DeviceUse::kStreaming, 0, 100, 100.0 / 122, 300, 300)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(RateOf(fit, DeviceUse::kStreaming, kGather), 800);
  EXPECT_EQ(fit.contention.streaming_kernel.ns(), 2'000);
}

/// Beside a streaming kernel that reads and writes so many MB in 100 us.
ContentionSample BesideMoved(std::int64_t megabytes,
                             Bytes payload,
                             std::int64_t beside_alone_us,
                             std::int64_t beside_us) {
  ContentionSample sample = Sample(DeviceUse::kStreaming, 0, 100, 0.8, beside_alone_us, beside_us);
  sample.moved = {Bytes(megabytes * 1'000'000), Bytes(megabytes * 1'000'000)};
  sample.payload = payload;
  return sample;
}

// A quarter of the traffic counts 0.25^2.5 = 1/32. time = 2 + alone * (1 + x * load), of 16 MiB
// with x = 1.6: 40 us -> 106 and 44, of 128 MiB with 0.8: 400 -> 722 and 412.
TEST(ContentionFitTest, CollectivesTakeLongerBesideWhatMovesMemory) {
  const std::vector<ContentionSample> samples = {
      BesideMoved(200, Bytes::MiB(16), 40, 106), BesideMoved(50, Bytes::MiB(16), 40, 44),
      BesideMoved(200, Bytes::MiB(128), 400, 722), BesideMoved(50, Bytes::MiB(128), 400, 412)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.CollectiveStart(2).ns(), 2'000);
  EXPECT_EQ(RateOf(fit, kGather, DeviceUse::kStreaming), 1000);
  ASSERT_TRUE(fit.contention.beside_memory.has_value());
  EXPECT_EQ(fit.contention.beside_memory->cache, Bytes::MiB(50));
  EXPECT_EQ(fit.contention.LongerBesideMemory(Bytes::MiB(16), 2).permille(), 1600);
  EXPECT_EQ(fit.contention.LongerBesideMemory(Bytes::MiB(128), 2).permille(), 800);
  EXPECT_NEAR(fit.beside_error, 0, 1e-12);
}

// Copies of another side stream hold collectives up as kernels of full traffic do, so nothing more
// is fitted: 40 us -> 2 + 40 * 2.6 = 106.
TEST(ContentionFitTest, CopiesOfSideStreamsAreFullTraffic) {
  ContentionSample copies = Sample(DeviceUse::kSideStreaming, 0, 20, 0.9, 40, 106);
  copies.payload = Bytes::MiB(16);
  const std::vector<ContentionSample> samples = {BesideMoved(200, Bytes::MiB(16), 40, 106),
                                                 BesideMoved(50, Bytes::MiB(16), 40, 44), copies};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(RateOf(fit, kGather, DeviceUse::kSideStreaming), 1000);
  EXPECT_EQ(RateOf(fit, DeviceUse::kSideStreaming, kGather), 900);
  EXPECT_NEAR(fit.beside_error, 0, 1e-12);
}

// time = 10 + alone / rate with rate 0.8 beside products and 0.5 beside attention:
// 40 us -> 60, 400 -> 510; 40 -> 90, 400 -> 810.
TEST(ContentionFitTest, CollectivesStartLateAndRunSlower) {
  const std::vector<ContentionSample> samples = {
      Sample(DeviceUse::kMatmul, 0, 90, 0.5, 40, 60),
      Sample(DeviceUse::kMatmul, 0, 90, 0.5, 400, 510),
      Sample(DeviceUse::kAttention, 0, 90, 0.5, 40, 90),
      Sample(DeviceUse::kAttention, 0, 90, 0.5, 400, 810)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.collective_start.ns(), 10'000);
  EXPECT_EQ(RateOf(fit, kGather, DeviceUse::kMatmul), 800);
  EXPECT_EQ(RateOf(fit, kGather, DeviceUse::kAttention), 500);
  EXPECT_FALSE(fit.contention.beside_memory.has_value());
  EXPECT_NEAR(fit.beside_error, 0, 1e-12);
}

// Where no sample tells what memory does, collectives beside copies of another side stream have a
// rate: 10 + alone / 0.4, 40 us -> 110, 400 -> 1010, with the start that products tell; the copies
// run at 0.7 and 0.9 of their speed.
TEST(ContentionFitTest, CollectivesBesideCopiesShareTheStart) {
  const std::vector<ContentionSample> samples = {
      Sample(DeviceUse::kMatmul, 0, 90, 0.5, 40, 60),
      Sample(DeviceUse::kMatmul, 0, 90, 0.5, 400, 510),
      Sample(DeviceUse::kSideStreaming, 0, 20, 0.7, 40, 110),
      Sample(DeviceUse::kSideStreaming, 0, 80, 0.9, 400, 1010)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.collective_start.ns(), 10'000);
  EXPECT_EQ(RateOf(fit, kGather, DeviceUse::kSideStreaming), 400);
  EXPECT_EQ(RateOf(fit, DeviceUse::kSideStreaming, kGather), 800);
}

// Two waves of a product are its thread blocks' first tiles, which no other takes over, whatever is
// lost: from 264 tiles alone 45 would follow.
TEST(ContentionFitTest, ProductsOfTwoWavesTellNoMultiprocessors) {
  const std::vector<ContentionSample> samples = {
      Sample(DeviceUse::kMatmul, 264, 90, 0.5, 300, 300),
      Sample(DeviceUse::kMatmul, 512, 170, 4.0 / 6, 300, 300)};
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.collective_multiprocessors, 30);
}

// Beside products the gather was first in 3 of 8 cases, beside additions in 5 of 8, and the next
// op came 4 and 6 us later; a copy of another stream tells nothing.
TEST(ContentionFitTest, CollectivesComeFirstAsOftenAsTheyDid) {
  std::vector<ContentionSample> samples = {Sample(DeviceUse::kMatmul, 0, 90, 0.5, 40, 60),
                                           Sample(DeviceUse::kStreaming, 0, 90, 0.5, 40, 60),
                                           Sample(DeviceUse::kSideStreaming, 0, 90, 0.5, 40, 60)};
  samples[0].first = 3.0 / 8;
  samples[0].first_delay = Duration::FromUs(4);
  samples[1].first = 5.0 / 8;
  samples[1].first_delay = Duration::FromUs(6);
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.comes_first.permille(), 500);
  EXPECT_EQ(fit.contention.first_delay, Duration::FromUs(6));
  EXPECT_EQ(fit.first_delay.least, Duration::FromUs(4));
}

// Full traffic is 400 + 400 MB in 100 us (writes count twice); a quarter of it counts 1/32. Copies
// of 320 us from other GPUs take 1 + 0.32 times as long beside the whole, 1 + 0.01 beside that
// quarter.
TEST(ContentionFitTest, CopiesFromOtherGpusWaitForMemory) {
  std::vector<ContentionSample> samples = {BesideMoved(200, Bytes::MiB(128), 320'000, 422'400),
                                           BesideMoved(50, Bytes::MiB(128), 320'000, 323'200)};
  for (ContentionSample& sample : samples) {
    sample.beside_use = DeviceUse::kCopyEngine;
    sample.compute_speed = 0.9;
  }
  const ContentionFit fit = FitContention(samples, kMachine);
  EXPECT_EQ(fit.contention.GatherLongerBesideMemory(2).permille(), 320);
  EXPECT_EQ(RateOf(fit, DeviceUse::kStreaming, DeviceUse::kCopyEngine), 900);
}

// Copies of a side stream: beside a product 62 us become 93, and the product stands still 60 % of
// that time.
TEST(ContentionFitTest, SideStreamsAreMeansOfTheirSamples) {
  ContentionSample sample = Sample(DeviceUse::kMatmul, 128, 90, 0.4, 62, 93);
  sample.beside_use = DeviceUse::kSideStreaming;
  const ContentionFit fit = FitContention({&sample, 1}, kMachine);
  EXPECT_EQ(RateOf(fit, DeviceUse::kMatmul, DeviceUse::kSideStreaming), 400);
  EXPECT_EQ(RateOf(fit, DeviceUse::kSideStreaming, DeviceUse::kMatmul), 667);
  EXPECT_EQ(RateOf(fit, DeviceUse::kAttention, DeviceUse::kSideStreaming), 1000);
}

}  // namespace
}  // namespace dcsim::exec
