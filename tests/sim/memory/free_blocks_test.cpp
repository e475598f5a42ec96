#include "sim/memory/free_blocks.h"

#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

using Key = std::tuple<Bytes, std::uint64_t, BlockHandle>;

// A few sizes, so that many are equal, and all magnitudes.
Bytes RandomSize(std::mt19937_64& random) {
  const auto magnitude = static_cast<int>(random() % 29);
  return Bytes(static_cast<std::int64_t>((random() % 6 + 1) << magnitude) * 512);
}

// The list orders as a std::set of (size, address) does, through random insertions and removals.
TEST(FreeBlocksTest, OrdersBySizeThenAddress) {
  std::mt19937_64 random(1);
  BlockTable blocks;
  FreeBlocks free;
  std::set<Key> expected;
  for (int step = 0; step < 5000; ++step) {
    if (expected.empty() || random() % 100 < 55) {
      Block block;
      block.bytes = RandomSize(random);
      block.address = random();
      const BlockHandle handle = blocks.Add(block);
      free.Insert(blocks, handle);
      expected.insert({block.bytes, block.address, handle});
    } else {
      const auto victim = expected.lower_bound({RandomSize(random), 0, 0});
      const auto entry = victim == expected.end() ? expected.begin() : victim;
      free.RemoveAt(free.Find(blocks, std::get<2>(*entry)));
      blocks.Remove(std::get<2>(*entry));
      expected.erase(entry);
    }
    const Bytes wanted = RandomSize(random);
    const auto fit = expected.lower_bound({wanted, 0, 0});
    const FreeBlocks::Position found = free.FindBestFit(wanted);
    ASSERT_EQ(found.is_end(), fit == expected.end());
    if (!found.is_end()) {
      ASSERT_EQ(free.at(found), std::get<2>(*fit));
    }
  }
  std::vector<BlockHandle> in_order;
  in_order.reserve(expected.size());
  for (const Key& key : expected) {
    in_order.push_back(std::get<2>(key));
  }
  EXPECT_EQ(free.ToVector(), in_order);
  EXPECT_EQ(free.at(free.Largest()), in_order.back());
}

TEST(FreeBlocksTest, EmptyListFindsNothing) {
  const FreeBlocks free;
  EXPECT_TRUE(free.FindBestFit(Bytes(512)).is_end());
  EXPECT_TRUE(free.Largest().is_end());
}

TEST(FreeBlocksTest, RequestsBeyondAnyDeviceFindNothing) {
  BlockTable blocks;
  FreeBlocks free;
  Block block;
  block.bytes = Bytes::GiB(1024);
  free.Insert(blocks, blocks.Add(block));
  EXPECT_FALSE(free.FindBestFit(Bytes::GiB(1024)).is_end());
  EXPECT_TRUE(free.FindBestFit(Bytes::GiB(4096)).is_end());
}

}  // namespace
}  // namespace dcsim
