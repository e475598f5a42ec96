#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/memory/caching_allocator.h"

namespace dcsim {

/// An allocator with four streams whose tasks a test issues and finishes by hand.
struct AllocatorHarness {
  explicit AllocatorHarness(const AllocatorConfig& config = {}) : allocator(config) {}

  /// Allocates without a retry; aborts if that needs one.
  BlockHandle Allocate(Bytes bytes, std::size_t stream = 0);

  /// Allocates as an engine does, with the retry; kNoBlock when refused.
  BlockHandle AllocateOrRetry(Bytes bytes, std::size_t stream = 0);

  void Free(BlockHandle block) { allocator.Free(block, issued); }

  /// Distance of a block from the lowest segment of the allocator.
  std::int64_t Offset(BlockHandle block) const;

  /// "alloc 2 MiB, free 20 MiB": the exchanges with the driver that no earlier call has returned.
  std::string NewEvents();

  CachingAllocator allocator;
  std::vector<std::uint64_t> issued = std::vector<std::uint64_t>(4);
  std::vector<std::uint64_t> completed = std::vector<std::uint64_t>(4);

 private:
  std::size_t seen_events_ = 0;
};

}  // namespace dcsim
