#include "model/cost/multiprocessor_share.h"

#include <gtest/gtest.h>

#include "model/ir/graph_text.h"

namespace dcsim {
namespace {

constexpr Duration kTime = Duration::FromUs(100);

GpuSpec Gpu() {
  GpuSpec gpu;
  gpu.multiprocessors = 132;
  gpu.contention.measured = true;
  gpu.contention.collective_multiprocessors = 40;
  return gpu;
}

/// Op 0: a product with an output of 8192 x 8192.
Graph LargeProduct() {
  return ParseGraphText(
      "graph product 1 tokens\n"
      "input a bfloat16[8192,2048]\ninput b bfloat16[2048,8192]\nforward\n"
      "  y: bfloat16[8192,8192] = aten::mm(a, b)\n"
      "  l: bfloat16[] = aten::sum(y)\n  loss l\n");
}

MultiprocessorShare ShareWith(DeviceUse use,
                              const std::string& kernel,
                              std::int64_t ctas,
                              const GpuSpec& gpu = Gpu()) {
  Profile profile;
  Kernel entry;
  entry.name = kernel;
  entry.ctas = ctas;
  entry.device_time = kTime;
  profile.kernels = {entry};
  OpProfile op;
  op.kernels = {0};
  return ShareOf(TraitsOf(LargeProduct(), OpId(0)), use, kTime, FindKernels(profile, op), gpu);
}

TEST(TileElementsTest, AreInTheKernelsName) {
  EXPECT_EQ(TileElements("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN"), 128 * 256);
  EXPECT_EQ(TileElements("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_128x64x32_2x1x1_0"),
            128 * 64);
  EXPECT_EQ(TileElements("ampere_bf16_s16816gemm_bf16_128x128_ldg8_stages_32x5_nt"), 128 * 128);
}

TEST(TileElementsTest, MayNotBeThere) {
  EXPECT_EQ(TileElements("gemv2T_kernel_val"), std::nullopt);
  EXPECT_EQ(TileElements("x_128x_x128_1x2x3x4_0x5"), std::nullopt);
  EXPECT_EQ(TileElements(""), std::nullopt);
}

// 2048 tiles take 16 waves on 132 multiprocessors, 23 on 92.
TEST(MultiprocessorShareTest, AProductNeedsMoreWavesBesideACollective) {
  const auto share = ShareWith(DeviceUse::kMatmul, "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_NTN", 132);
  EXPECT_EQ(share.beside_collective, Rate::FromPermille(1000 * 16 / 23));
  EXPECT_EQ(share.room, kTime);
}

// 128 blocks are one wave alone and two beside a collective.
TEST(MultiprocessorShareTest, AProductOfOneWaveTakesTwice) {
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "gemm", 128).beside_collective, Rate::FromPermille(500));
}

TEST(MultiprocessorShareTest, AProductThatFitsBesideACollectiveLosesNothing) {
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "gemm", 92).beside_collective, Rate::FromPermille(1000));
}

// 2048 tiles leave 16 * 132 - 2048 multiprocessors free in the last of 16 waves; 2112 and 1056 fill
// all of them.
TEST(MultiprocessorShareTest, ALastWaveThatIsNotFullLeavesRoom) {
  const auto share = ShareWith(DeviceUse::kMatmul, "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_NTN", 132);
  EXPECT_EQ(share.last_wave, Duration::FromNs(100'000 / 16));
  EXPECT_EQ(share.last_free, 64);
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "gemm", 2112).last_free, 0);
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "gemm", 2112).last_wave, Duration());
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "gemm", 1056).last_wave, Duration());
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "persistent_gemm", 132).last_wave, Duration());
}

// A persistent kernel whose name tells no tile; and one that was not measured.
TEST(MultiprocessorShareTest, WithoutTilesTheClassCounts) {
  EXPECT_EQ(ShareWith(DeviceUse::kMatmul, "persistent_gemm", 132).beside_collective, std::nullopt);
  const auto share =
      ShareOf(TraitsOf(LargeProduct(), OpId(0)), DeviceUse::kMatmul, kTime, {}, Gpu());
  EXPECT_EQ(share.beside_collective, std::nullopt);
  EXPECT_EQ(share.room, kTime);
}

// The first convolution's backward pass has no gradient of the images: its tiles are the weight's,
// 2048 as above.
TEST(MultiprocessorShareTest, AResultThatNobodyWantsHasNoTiles) {
  const Graph graph = ParseGraphText(
      "graph first 1 tokens\n"
      "input g bfloat16[8192,8192]\n"
      "input a bfloat16[8192,2048]\ninput b bfloat16[2048,8192]\nforward\n"
      "  _, w: bfloat16[8192,8192] = aten::convolution_backward(g, a, b)\n"
      "  l: bfloat16[] = aten::sum(w)\n  loss l\n");
  Kernel kernel;
  kernel.name = "sm90_xmma_wgrad_128x256x64";
  kernel.ctas = 132;
  const auto share =
      ShareOf(TraitsOf(graph, OpId(0)), DeviceUse::kMatmul, kTime, {&kernel, 1}, Gpu());
  EXPECT_EQ(share.beside_collective, Rate::FromPermille(1000 * 16 / 23));
}

/// Op 0: products of four experts.
MultiprocessorShare ShareOfExperts(const Kernel* kernel) {
  const Graph graph = ParseGraphText(
      "graph experts 1 tokens\n"
      "input a bfloat16[512,256]\ninput b bfloat16[4,256,128]\ninput o int32[4]\nforward\n"
      "  y: bfloat16[512,128] = aten::_grouped_mm(a, b, o)\n"
      "  l: bfloat16[] = aten::sum(y)\n  loss l\n");
  const LaunchedKernels launched{kernel, 1};
  return ShareOf(TraitsOf(graph, OpId(0)), DeviceUse::kMatmul, kTime, launched, Gpu());
}

// Whoever comes late computes its tiles late; nobody else takes them.
TEST(MultiprocessorShareTest, ProductsOfExpertsHaveFixedTiles) {
  Kernel kernel;
  kernel.ctas = 132;
  const auto share = ShareOfExperts(&kernel);
  EXPECT_EQ(share.own_tiles, kTime);
  EXPECT_EQ(share.own_latest, kTime);
  EXPECT_EQ(share.room, kTime);
  EXPECT_EQ(share.beside_collective, Rate());
  EXPECT_EQ(ShareOfExperts(nullptr).own_tiles, kTime);
  kernel.ctas = 512;
  EXPECT_EQ(ShareOfExperts(&kernel).own_tiles, Duration());
}

/// A persistent product of 100 us: so many tiles of its 67,108,864 elements.
struct OwnTilesRow {
  const char* name;
  const char* kernel;
  int ctas;
  std::int64_t own_us;
  std::int64_t latest_us;
};

class OwnTilesTest : public testing::TestWithParam<OwnTilesRow> {};

// Beside a collective 92 of the 132 thread blocks run at once. Block i is given tiles i and i +
// 132. 256 tiles: 124 blocks have two, those that run as those that wait. 171 tiles: 39 blocks have
// two, and 53 of those that run end with their first. 2048 tiles: others end behind 1968 / 92 of
// theirs, each a sixteenth of the time.
TEST_P(OwnTilesTest, AreGivenBeforehand) {
  const auto share = ShareWith(DeviceUse::kMatmul, GetParam().kernel, GetParam().ctas);
  EXPECT_EQ(share.own_tiles, Duration::FromUs(GetParam().own_us));
  EXPECT_EQ(share.own_latest, Duration::FromUs(GetParam().latest_us));
}

INSTANTIATE_TEST_SUITE_P(Products,
                         OwnTilesTest,
                         testing::Values(OwnTilesRow{"OneWave", "gemm", 128, 100, 100},
                                         OwnTilesRow{"RoomForAll", "gemm", 92, 0, 0},
                                         OwnTilesRow{"TwoWaves", "nvjet_1024x256_", 132, 100, 100},
                                         OwnTilesRow{"TwoWavesOneOfThemShort", "nvjet_4096x96_",
                                                     132, 50, 50},
                                         OwnTilesRow{"FourWaves", "nvjet_1024x128_", 132, 50, 100},
                                         OwnTilesRow{"NoTileKnown", "persistent_gemm", 132, 0, 0},
                                         OwnTilesRow{"BlocksOfManyWaves", "gemm", 2112, 0, 0}),
                         [](const auto& row) { return row.param.name; });

// A convolution's backward pass is several kernels; only its longest one, of one wave, has such
// tiles, and takes two thirds of the op: so says the profile, which may know both by the times of
// longer ones of their names.
TEST(MultiprocessorShareTest, TilesAreThoseOfTheLongestKernel) {
  Profile profile;
  Kernel longest;
  longest.name = "gemm";
  longest.ctas = 128;
  longest.device_time = Duration::FromUs(160);
  Kernel other = longest;
  other.device_time = Duration::FromUs(80);
  profile.kernels = {other, longest};
  OpProfile op;
  op.kernels = {0, 1};
  const auto share = ShareOf(TraitsOf(LargeProduct(), OpId(0)), DeviceUse::kMatmul,
                             Duration::FromUs(90), FindKernels(profile, op), Gpu());
  EXPECT_EQ(share.own_tiles, Duration::FromUs(60));
  EXPECT_EQ(share.room, Duration::FromUs(90));
}

// 1056 blocks are eight waves.
TEST(MultiprocessorShareTest, BlocksOfManyWavesLeaveRoomSooner) {
  EXPECT_EQ(ShareWith(DeviceUse::kAttention, "flash_fwd", 1056).room, Duration::FromNs(12'500));
}

// Of 100 us: a tenth, and 3 us a kernel. Of a kernel of 4 us half, instead of 3.4.
TEST(MultiprocessorShareTest, StreamingLosesAShareAndATimeAKernel) {
  GpuSpec gpu = Gpu();
  gpu.contention.streaming_kernel = Duration::FromUs(3);
  gpu.contention.rates[static_cast<std::size_t>(DeviceUse::kStreaming)]
                      [static_cast<std::size_t>(DeviceUse::kCollective)] = Rate::FromPermille(900);
  const Graph graph = LargeProduct();
  const auto rate = [&](Duration time) {
    return ShareOf(TraitsOf(graph, OpId(0)), DeviceUse::kStreaming, time, {}, gpu)
        .beside_collective;
  };
  EXPECT_EQ(rate(kTime), Rate::FromPermille(100'000 * 1000 / 113'000));
  EXPECT_EQ(rate(Duration::FromUs(4)), Rate::FromPermille(4 * 1000 / 6));
  EXPECT_EQ(ShareWith(DeviceUse::kStreaming, "mul", 9999, gpu).room, Duration());
}

}  // namespace
}  // namespace dcsim
