// at::cat on the GPU of gpu_with_kernels.h: 100 multiprocessors, 2 TB/s. A kernel starts in 1 us, a
// thread block without work takes 1 ns, unaligned parts reach a tenth of the bandwidth, one of them
// a twentieth.

#include "model/cost/concatenation.h"

#include <gtest/gtest.h>

#include "model/cost/kernel_models.h"
#include "model/ir/graph_text.h"
#include "tests/model/cost/gpu_with_kernels.h"

namespace dcsim {
namespace {

/// Of bfloat16, where aligned parts are copied at 1 TB/s.
std::int64_t CatNs(const std::vector<ConcatenatedPart>& parts, double hidden = 0) {
  GpuSpec gpu = GpuWithKernels();
  KernelRates kernels = *gpu.kernels;
  kernels.concatenation.hidden = hidden;
  gpu.kernels = std::make_shared<KernelRates>(kernels);
  return ConcatenationTime(parts, 2, BytesPerSecond(1'000'000'000'000), gpu).ns();
}

// 256,000 elements, 1.024 MB read and written; of 1,024 a thread block each.
TEST(ConcatenationTest, AlikePartsLeaveNoThreadBlockIdle) {
  EXPECT_EQ(CatNs({{128'000, 0}, {128'000, 0}}), 1'000 + 1'024);
}

// 100 thread blocks for the larger, as many for the smaller, of which one has work.
TEST(ConcatenationTest, SmallPartsHaveThreadBlocksWithoutWork) {
  EXPECT_EQ(CatNs({{102'400, 0}, {1'024, 0}}), 1'000 + 414 + 99);
}

// 32 a multiprocessor at most: 3,200 for each, of which the smaller one needs 1.
TEST(ConcatenationTest, LargePartsShareThreadBlocks) {
  EXPECT_EQ(CatNs({{32'768'000, 0}, {1'024, 0}}), 1'000 + 131'076 + 3'199);
}

// Half of the shorter one: 99 and 414 ns.
TEST(ConcatenationTest, SomeOfTheIdleThreadBlocksHideBehindCopies) {
  EXPECT_EQ(CatNs({{102'400, 0}, {1'024, 0}}, 0.5), 1'000 + 414 + 49);
}

// A kernel takes 128 parts; the second one has as many thread blocks a part as the first.
TEST(ConcatenationTest, EachKernelTakes128Parts) {
  EXPECT_EQ(CatNs(std::vector<ConcatenatedPart>(129, {1'024, 0})), 2'000 + 528);
  std::vector<ConcatenatedPart> parts(129, {1'024, 0});
  parts.front().elements = 102'400;
  EXPECT_EQ(CatNs(parts), 2'000 + 934 + 128 * 99);
}

// Two thread blocks of 512 a multiprocessor, 200 for each part: two of them work. 2,048 elements,
// 8.192 kB, at 200 GB/s; one part alone would take as long at 100.
TEST(ConcatenationTest, UnalignedPartsGoElementByElement) {
  EXPECT_EQ(CatNs({{1'024, 8}, {1'024, 4}}), 1'000 + 41 + 2 * 198);
}

// 512 elements a thread block, three of them for each part; the shorter one needs two.
TEST(ConcatenationTest, PartsOfAnyLengthNeedMoreThreadBlocks) {
  EXPECT_EQ(CatNs({{1'020, 8}, {1'028, 8}}), 1'000 + 8 + 1);
}

// 4.096 MB at 100 GB/s; the other part is copied meanwhile.
TEST(ConcatenationTest, OneLargeUnalignedPartHasFewThreadBlocks) {
  EXPECT_EQ(CatNs({{1'024'000, 1}, {512, 1}}), 1'000 + 40'960 + 199);
}

// What comes behind an odd part in the same at::cat is taken to be unaligned, too.
TEST(ConcatenationTest, AnOddPartMakesAllBehindItSlow) {
  std::vector<ConcatenatedPart> parts(256, {512, 0});
  parts[130].begin = 1;
  EXPECT_EQ(CatNs(parts), 2'000 + 262 + 1'311 + 128 * 199);
  parts[1].begin = 1;
  EXPECT_EQ(CatNs(parts), 2'000 + 2'621 + 256 * 199);
}

/// a of 10 elements, b of 6.
Graph TwoParams() {
  return ParseGraphText(R"(
graph g 1 tokens
param a bfloat16[10]
param b bfloat16[6]
forward
  l: float32[] = my::loss(a, b)
  loss l
)");
}

using Parts = std::vector<std::pair<std::int64_t, std::int64_t>>;  // elements, begin

std::vector<Parts> FlattenedBy(int ranks, bool by_rank, bool contiguous) {
  Collective collective;
  collective.ranks = ranks;
  const auto padded = [&](std::int64_t numel) {
    return by_rank ? (numel + ranks - 1) / ranks * ranks : numel;
  };
  collective.calls = {{ParamId(0), padded(10), 0}, {ParamId(1), padded(6), 10}};
  std::vector<Parts> cats;
  for (const auto& cat : FlattenedParts(collective, TwoParams(), by_rank, contiguous)) {
    Parts& parts = cats.emplace_back();
    for (const ConcatenatedPart& part : cat) {
      parts.emplace_back(part.elements, part.begin);
    }
  }
  return cats;
}

TEST(FlattenedPartsTest, GradientsOfABufferLieBehindOneAnother) {
  EXPECT_EQ(FlattenedBy(2, false, true), (std::vector<Parts>{{{10, 0}, {6, 10}}}));
  EXPECT_EQ(FlattenedBy(2, false, false), (std::vector<Parts>{{{10, 0}, {6, 0}}}));
}

// Rank by rank: fives and threes.
TEST(FlattenedPartsTest, ZeRO3TakesSharesRankByRank) {
  EXPECT_EQ(FlattenedBy(2, true, true), (std::vector<Parts>{{{5, 0}, {3, 10}, {5, 5}, {3, 13}}}));
}

// Of three ranks four and two elements each; the third has two of a and two more of padding, which
// is written by itself.
TEST(FlattenedPartsTest, PaddingEndsAnAtCat) {
  EXPECT_EQ(FlattenedBy(3, true, true),
            (std::vector<Parts>{{{4, 0}, {2, 10}, {4, 4}, {2, 12}, {2, 8}}, {{2, 14}}}));
}

}  // namespace
}  // namespace dcsim
