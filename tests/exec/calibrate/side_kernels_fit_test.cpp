#include "exec/calibrate/side_kernels_fit.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dcsim::exec {
namespace {

constexpr int kMultiprocessors = 132;

Duration Us(double us) {
  return Duration::FromNs(static_cast<std::int64_t>(us * 1000));
}

/// 32 kernels of 5 us, of which they move bytes for 2, beside compute.
ContentionSample Many(DeviceUse use, const std::string& compute, Duration alone, Duration time) {
  ContentionSample sample;
  sample.use = use;
  sample.compute = compute;
  sample.compute_alone = alone;
  sample.beside_use = DeviceUse::kSideStreaming;
  sample.kernels = 32;
  sample.beside_alone = Us(160);
  sample.beside_moving = Us(64);
  sample.beside_time = time;
  return sample;
}

/// Beside products that leave them `left` us each.
ContentionSample BesideProduct(std::int64_t tiles, double alone_us, double left_us) {
  ContentionSample sample =
      Many(DeviceUse::kMatmul, "mm", Us(alone_us), Us(160 * alone_us / left_us));
  sample.tiles = tiles;
  return sample;
}

ContentionSample BesideStreaming(const std::string& compute, double alone_us, double later_us) {
  return Many(DeviceUse::kStreaming, compute, Us(alone_us), Us(160 + 32 * later_us));
}

// Where a copy needs 64 multiprocessors: 512 tiles on 132 are four waves of 44 us, the last one
// leaves 16, so 2 of 5 us take four times as long: 44 / 2.2 = 20 us, and 4 between products. 128
// tiles leave 4 of one wave of 88 us: 88 / 7. 1,600 leave 116 of 13, all that is needed: 30 us of
// 390. 264 leave none, so one kernel runs.
TEST(SideKernelsFitTest, ProductsLeaveTheirLastWaveAndSomeTimeBetween) {
  const std::vector<ContentionSample> samples = {
      BesideProduct(512, 176, 20 + 4), BesideProduct(128, 88, 88.0 / 7 + 4),
      BesideProduct(1600, 390, 30 + 4), BesideProduct(264, 90, 5), BesideStreaming("add", 20, 3)};
  const auto fit = FitSideKernels(samples, kMultiprocessors);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->copy_multiprocessors, 64);
  EXPECT_EQ(fit->kernels.between, Us(4));
  EXPECT_NEAR(fit->error, 0, 1e-4);
  EXPECT_NEAR(fit->copy_rate, (16.0 / 64 + 4.0 / 64 + 1 + 0) / 4, 1e-12);
}

// Two additions say 3 and 2 us, a softmax 1: (2.5 + 1) / 2. A kernel of 5 us is too short to tell.
TEST(SideKernelsFitTest, KindsOfStreamingKernelsCountAlike) {
  const std::vector<ContentionSample> samples = {
      BesideProduct(512, 176, 24), BesideStreaming("add 32 MiB", 20, 3),
      BesideStreaming("add 256 MiB", 130, 2), BesideStreaming("softmax 32 MiB", 57, 1),
      BesideStreaming("mul 8 MiB", 5, 9)};
  const auto fit = FitSideKernels(samples, kMultiprocessors);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->kernels.later, Us(1.75));
  EXPECT_EQ(fit->later.least, Us(1));
  EXPECT_EQ(fit->later.most, Us(3));
  EXPECT_EQ(fit->later.samples, 3U);
}

TEST(SideKernelsFitTest, OneKernelTellsNothing) {
  ContentionSample one = BesideProduct(512, 176, 24);
  one.kernels = 1;
  const std::vector<ContentionSample> samples = {one, BesideStreaming("add", 20, 3)};
  EXPECT_FALSE(FitSideKernels(samples, kMultiprocessors).has_value());
}

}  // namespace
}  // namespace dcsim::exec
