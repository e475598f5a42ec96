#include "sim/memory/segment_table.h"

#include <map>
#include <queue>
#include <utility>

#include "model/base/error.h"

namespace dcsim {
namespace {

// Any multiple of 2 MiB with more room below than a run can use.
constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 62;

// Slots of 1 TiB, more than any segment takes.
constexpr std::uint32_t kSlotBits = 20;
constexpr std::uint64_t kSlots = std::uint64_t{1} << kSlotBits;
constexpr std::uint64_t kSlotBytes = std::uint64_t{1} << 40U;

/// A permutation of the slots: each step can be undone.
std::uint64_t Shuffled(std::uint64_t slot, std::uint32_t order) {
  constexpr std::uint64_t kStep = 0x9E375;  // odd, as all factors
  constexpr int kRounds = 3;
  std::uint64_t shuffled = (slot + order * kStep) % kSlots;
  for (int round = 0; round < kRounds; ++round) {
    shuffled ^= shuffled >> (kSlotBits / 2);
    shuffled = shuffled * (kStep * 2 * order + 0x2545F) % kSlots;
  }
  return shuffled;
}

}  // namespace

SegmentPlacement ShuffledPlacement(std::uint32_t order) {
  if (order == 0) {
    return {};
  }
  return [order, next = std::uint64_t{0}](const Segment&) mutable {
    DCSIM_CHECK(next < kSlots);
    return kSlotBytes * (1 + Shuffled(next++, order));
  };
}

SegmentPlacement RecordedPlacement(const std::vector<SegmentPlace>& recorded) {
  std::map<Bytes, std::queue<std::uint64_t>> places;
  for (const SegmentPlace& place : recorded) {
    places[place.bytes].push(place.address);
  }
  return [places, lowest = kEndOfAddresses](const Segment& made) mutable {
    if (const auto left = places.find(made.bytes); left != places.end() && !left->second.empty()) {
      const std::uint64_t address = kEndOfAddresses + left->second.front();
      left->second.pop();
      return address;
    }
    lowest -= static_cast<std::uint64_t>(RoundUp(made.bytes.count(), kSmallSegment.count()));
    return lowest;
  };
}

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
