#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "sim/memory/allocator_config.h"
#include "sim/memory/block_table.h"

namespace dcsim {

/// One cudaMalloc, or the address space of one expandable segment.
struct Segment {
  std::uint64_t address = 0;
  Bytes bytes;                   // 0 in unused entries of the table
  BlockHandle first = kNoBlock;  // its lowest block; the handle stays the same for life
  std::uint16_t pool = 0;
};

enum class SegmentEventKind : std::uint8_t { kAlloc, kFree, kMap, kUnmap };

/// One exchange of memory with the driver: cudaMalloc, cudaFree, or the mapping of pages.
struct SegmentEvent {
  SegmentEventKind kind = SegmentEventKind::kAlloc;
  std::uint64_t address = 0;
  Bytes bytes;
  StreamId stream;

  bool operator==(const SegmentEvent&) const = default;
};

/// Chooses the address of a new segment, of which pool and bytes are set. Only needed to repeat a
/// run of which the addresses are known.
using SegmentPlacement = std::function<std::uint64_t(const Segment& segment)>;

/// Addresses in the n-th shuffled order (AllocatorConfig::segment_order), for up to 2^20 segments;
/// empty for order 0.
SegmentPlacement ShuffledPlacement(std::uint32_t order);

/// Addresses as recorded (AllocatorConfig::recorded_segments). `recorded` lie apart.
SegmentPlacement RecordedPlacement(const std::vector<SegmentPlace>& recorded);

/// The segments of an allocator, by dense index; indices of removed segments are given out again.
class SegmentTable {
 public:
  /// `placement` may be empty: then each segment lies below the one made before it, and
  /// addresses are never used twice. The driver goes downwards too, but fills gaps.
  explicit SegmentTable(SegmentPlacement placement);

  Segment& operator[](std::uint32_t index) { return segments_[index]; }
  const Segment& operator[](std::uint32_t index) const { return segments_[index]; }
  const std::vector<Segment>& all() const { return segments_; }

  /// Adds a segment and chooses its address; its first block is still to be set.
  std::uint32_t Add(Bytes bytes, std::uint16_t pool);

  void Remove(std::uint32_t index);

 private:
  std::vector<Segment> segments_;
  std::vector<std::uint32_t> unused_;
  std::uint64_t lowest_address_;
  SegmentPlacement placement_;
};

}  // namespace dcsim
