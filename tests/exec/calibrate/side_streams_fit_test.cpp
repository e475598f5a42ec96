#include "exec/calibrate/side_streams_fit.h"

#include <vector>

#include <gtest/gtest.h>

#include "exec/calibrate/contention_fit.h"

namespace dcsim::exec {
namespace {

/// Side work that takes so long alone and beside other work.
ContentionSample Sample(DeviceUse work, DeviceUse beside, std::int64_t alone_us, std::int64_t us) {
  ContentionSample sample;
  sample.beside_use = work;
  sample.use = beside;
  sample.beside_alone = Duration::FromUs(alone_us);
  sample.beside_time = Duration::FromUs(us);
  return sample;
}

// A collective gets 40 and 50 % of its speed beside reads of peers' memory, these 60 % beside it, a
// copy 80 % beside them.
TEST(SideStreamsFitTest, SpeedsAreMeansOfTheirPairs) {
  constexpr auto kCollective = DeviceUse::kCollective;
  constexpr auto kReads = DeviceUse::kCopyEngine;
  constexpr auto kCopy = DeviceUse::kSideStreaming;
  const std::vector<ContentionSample> samples = {
      Sample(kCollective, kReads, 40, 100), Sample(kCollective, kReads, 50, 100),
      Sample(kReads, kCollective, 60, 100), Sample(kCopy, kReads, 80, 100)};
  const SideStreamsFit fit = FitSideStreams(samples, 2);
  EXPECT_DOUBLE_EQ(fit.collective_beside_reads.mean, 0.45);
  EXPECT_DOUBLE_EQ(fit.collective_beside_reads.least, 0.4);
  EXPECT_DOUBLE_EQ(fit.collective_beside_reads.most, 0.5);
  EXPECT_DOUBLE_EQ(fit.reads_beside_collective.mean, 0.6);
  EXPECT_DOUBLE_EQ(fit.copy_beside_reads.mean, 0.8);
  EXPECT_EQ(fit.copies_beside_copies.samples, 0U);
  const Contention contention = FitContention(samples, {132, Bytes::MiB(50), 2}).contention;
  EXPECT_EQ(contention.RateOf(kCollective, kReads), Rate::FromPermille(450));
  EXPECT_EQ(contention.RateOf(kReads, kCollective), Rate::FromPermille(600));
  EXPECT_EQ(contention.RateOf(kCopy, kReads), Rate::FromPermille(800));
  EXPECT_EQ(contention.RateOf(kCopy, kCopy), Rate()) << "no pair tells";
}

// Copies of 100 us that move bytes for 40 of them take 125 beside others: 0.8 of their speed, so of
// what moves 0.5.
TEST(SideStreamsFitTest, ManyCopiesTellWhatOneGetsThatMovesAllTheTime) {
  ContentionSample many = Sample(DeviceUse::kSideStreaming, DeviceUse::kSideStreaming, 100, 125);
  many.kernels = 32;
  many.beside_moving = Duration::FromUs(40);
  EXPECT_NEAR(FitSideStreams({&many, 1}, 2).copies_beside_copies.mean, 0.5, 1e-12);
}

TEST(SideStreamsFitTest, CopiesOfTheHostAreNoReadsOfPeers) {
  ContentionSample out = Sample(DeviceUse::kCopyEngine, DeviceUse::kStreaming, 90, 100);
  out.host = HostCopy::kOut;
  ContentionSample back = Sample(DeviceUse::kCopyEngine, DeviceUse::kMatmul, 70, 100);
  back.host = HostCopy::kBack;
  const std::vector<ContentionSample> samples = {out, back};
  const SideStreamsFit fit = FitSideStreams(samples, 2);
  EXPECT_DOUBLE_EQ(fit.to_host.mean, 0.9);
  EXPECT_DOUBLE_EQ(fit.from_host.mean, 0.7);
  const Contention contention = FitContention(samples, {132, Bytes::MiB(50), 2}).contention;
  EXPECT_EQ(contention.to_host, Rate::FromPermille(900));
  EXPECT_EQ(contention.RateOf(DeviceUse::kStreaming, DeviceUse::kCopyEngine), Rate());
}

// A kernel of 4 us takes 5 beside a gather and 8 while the three others read, too: 1 us for each.
// Of one of 40 us memory decides, and a gather without such reads tells nothing.
TEST(SideStreamsFitTest, ShortKernelsTellWhatCrowdedLinksCost) {
  std::vector<ContentionSample> samples(4);
  for (ContentionSample& sample : samples) {
    sample = Sample(DeviceUse::kCollective, DeviceUse::kStreaming, 100, 100);
    sample.compute = "add";
    sample.beside = "gather";
    sample.compute_alone = Duration::FromUs(4);
  }
  samples[0].compute_speed = 4.0 / 5;
  samples[1].compute_speed = 4.0 / 8;
  samples[1].peers_read = true;
  samples[2].compute = samples[3].compute = "large add";
  samples[2].compute_alone = samples[3].compute_alone = Duration::FromUs(40);
  samples[3].compute_speed = 0.5;
  samples[3].peers_read = true;
  const SideStreamsFit fit = FitSideStreams(samples, 4);
  EXPECT_EQ(fit.crowded_kernel.samples, 1U);
  EXPECT_EQ(fit.typical_crowded, Duration::FromUs(1));
}

}  // namespace
}  // namespace dcsim::exec
