// Time of one Allocate and one Free in steady state, for the patterns that a training step mixes.
// Every pattern keeps about `range(0)` free blocks in the pool that it works on.

#include <array>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <random>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/memory/caching_allocator.h"

namespace dcsim {
namespace {

const StreamId kCompute(0);
const StreamId kGather(1);
constexpr std::array<std::uint64_t, 2> kNothingRun = {0, 0};

// Free blocks of `count` different sizes from 12 MiB on, each between two allocated ones where
// segments are expandable, so that they cannot join.
void FillCache(CachingAllocator& allocator, std::int64_t count) {
  std::vector<BlockHandle> blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    blocks.push_back(allocator.Allocate(Bytes::MiB(12 + 2 * i), kCompute, kNothingRun).block);
    allocator.Allocate(Bytes::MiB(2), kCompute, kNothingRun);
  }
  for (const BlockHandle block : blocks) {
    allocator.Free(block, kNothingRun);
  }
}

// Random sizes of FillCache, less a constant: a sequence too long for a branch predictor to learn.
std::vector<Bytes> RandomSizes(std::int64_t count, std::int64_t below_bytes) {
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes;
  for (int i = 0; i < 20'000; ++i) {
    const auto block = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
    sizes.push_back(Bytes::MiB(12 + 2 * block) - Bytes(below_bytes));
  }
  return sizes;
}

void RunPairs(benchmark::State& state, bool expandable, std::int64_t below_bytes) {
  AllocatorConfig config;
  config.expandable_segments = expandable;
  CachingAllocator allocator(config);
  FillCache(allocator, state.range(0));
  const std::vector<Bytes> sizes = RandomSizes(state.range(0), below_bytes);
  std::size_t next = 0;
  for (auto _ : state) {
    const Allocation allocation = allocator.Allocate(sizes[next], kCompute, kNothingRun);
    allocator.Free(allocation.block, kNothingRun);
    next = next + 1 == sizes.size() ? 0 : next + 1;
  }
  state.SetItemsProcessed(state.iterations());
}

// The same sizes come again and again, as in training: each request finds a block of its size.
void BM_WholeBlock(benchmark::State& state) {
  RunPairs(state, false, 0);
}
BENCHMARK(BM_WholeBlock)->Arg(10)->Arg(100)->Arg(1000);

// Each request cuts a block, each free joins it again.
void BM_SplitAndJoin(benchmark::State& state) {
  RunPairs(state, false, Bytes::KiB(1536).count());
}
BENCHMARK(BM_SplitAndJoin)->Arg(100);

void BM_ExpandableSplitAndJoin(benchmark::State& state) {
  RunPairs(state, true, Bytes::KiB(1536).count());
}
BENCHMARK(BM_ExpandableSplitAndJoin)->Arg(100);

// Small temporaries of random sizes, allocated and freed in a window of 16.
void BM_SmallTemporaries(benchmark::State& state) {
  CachingAllocator allocator{AllocatorConfig{}};
  std::mt19937 random(1);
  std::vector<Bytes> sizes;
  for (int i = 0; i < 20'000; ++i) {
    sizes.push_back(Bytes(static_cast<std::int64_t>(random() % 200'000 + 1)));
  }
  std::array<BlockHandle, 16> window{};
  for (BlockHandle& block : window) {
    block = allocator.Allocate(Bytes::KiB(100), kCompute, kNothingRun).block;
  }
  std::size_t next = 0;
  for (auto _ : state) {
    BlockHandle& oldest = window[next % window.size()];
    allocator.Free(oldest, kNothingRun);
    oldest = allocator.Allocate(sizes[next % sizes.size()], kCompute, kNothingRun).block;
    ++next;
  }
}
BENCHMARK(BM_SmallTemporaries);

// A buffer of the gather stream, used by compute, released while compute is four tasks behind.
void BM_RecordStream(benchmark::State& state) {
  CachingAllocator allocator{AllocatorConfig{}};
  FillCache(allocator, state.range(0));
  std::array<std::uint64_t, 2> issued = {4, 0};
  std::array<std::uint64_t, 2> completed = {0, 0};
  for (auto _ : state) {
    const Allocation allocation = allocator.Allocate(Bytes::MiB(64), kGather, completed);
    allocator.RecordStream(allocation.block, kCompute);
    allocator.Free(allocation.block, issued);
    ++issued[0];
    ++completed[0];
  }
}
BENCHMARK(BM_RecordStream)->Arg(100);

}  // namespace
}  // namespace dcsim

BENCHMARK_MAIN();
