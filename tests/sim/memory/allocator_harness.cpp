#include "tests/sim/memory/allocator_harness.h"

#include <array>

#include "model/base/error.h"

namespace dcsim {

BlockHandle AllocatorHarness::Allocate(Bytes bytes, std::size_t stream) {
  const Allocation allocation = allocator.Allocate(bytes, StreamId(stream), completed);
  DCSIM_CHECK(allocation.status == AllocationStatus::kOk);
  return allocation.block;
}

BlockHandle AllocatorHarness::AllocateOrRetry(Bytes bytes, std::size_t stream) {
  Allocation allocation = allocator.Allocate(bytes, StreamId(stream), completed);
  if (allocation.status == AllocationStatus::kNeedsSynchronize) {
    completed = issued;
    allocation = allocator.AllocateAfterSynchronize(bytes, StreamId(stream));
  }
  return allocation.block;
}

std::int64_t AllocatorHarness::Offset(BlockHandle block) const {
  return static_cast<std::int64_t>(allocator.BlockAddress(block) -
                                   allocator.Segments().front().address);
}

std::string AllocatorHarness::NewEvents() {
  constexpr std::array<const char*, 4> kNames = {"alloc", "free", "map", "unmap"};
  std::string text;
  for (const SegmentEvent& event : allocator.segment_events().subspan(seen_events_)) {
    text += text.empty() ? "" : ", ";
    text += kNames[static_cast<std::size_t>(event.kind)];
    text += " " + std::to_string(event.bytes.count() >> 20) + " MiB";
  }
  seen_events_ = allocator.segment_events().size();
  return text;
}

}  // namespace dcsim
