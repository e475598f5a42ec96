#include "sim/memory/segment_table.h"

#include <utility>

#include "sim/memory/allocator_config.h"

namespace dcsim {
namespace {

// Any multiple of 2 MiB with more room below than a run can use.
constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 62;

}  // namespace

SegmentTable::SegmentTable(SegmentPlacement placement)
    : lowest_address_(kEndOfAddresses),
      placement_(std::move(placement)) {}

std::uint32_t SegmentTable::Add(Bytes bytes, std::uint16_t pool) {
  Segment segment{.address = 0, .bytes = bytes, .first = kNoBlock, .pool = pool};
  if (placement_) {
    segment.address = placement_(segment);
  } else {
    lowest_address_ -= static_cast<std::uint64_t>(RoundUp(bytes.count(), kSmallSegment.count()));
    segment.address = lowest_address_;
  }
  if (unused_.empty()) {
    segments_.push_back(segment);
    return static_cast<std::uint32_t>(segments_.size() - 1);
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  segments_[index] = segment;
  return index;
}

void SegmentTable::Remove(std::uint32_t index) {
  segments_[index] = Segment{};
  unused_.push_back(index);
}

}  // namespace dcsim
