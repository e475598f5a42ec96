#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// Largest device the replay can describe; sizes are kept in 32-bit counts of 512 bytes.
inline constexpr Bytes kMaxCapacity = Bytes::GiB(1024);

/// What the driver keeps of the memory that cudaMemGetInfo reports as free. Measured on one H200
/// (driver 580.159.04, record_allocator.py, 2026-11-21): requests that would have left 1.125 MiB
/// were refused, cudaMalloc and cuMemCreate alike; one that left 3.125 MiB was served.
inline constexpr Bytes kDriverReserve = Bytes::MiB(2);

/// Number of size classes of `roundup_power2_divisions`: 1 MiB, 2 MiB, 4 MiB ... 32 GiB and above.
inline constexpr std::size_t kRoundupClasses = 16;

/// A segment of a recorded run.
struct SegmentPlace {
  std::uint64_t address = 0;
  Bytes bytes;

  bool operator==(const SegmentPlace&) const = default;
};

/// Settings of PyTorch's CUDA caching allocator, by the names of PYTORCH_ALLOC_CONF where it has
/// one. The defaults are PyTorch's.
struct AllocatorConfig {
  /// Grow one virtual segment per stream and pool instead of one cudaMalloc per segment.
  bool expandable_segments = false;
  /// What the driver can hand out in all: device memory less contexts, modules, NCCL buffers and
  /// kDriverReserve.
  Bytes capacity = kMaxCapacity;
  /// Total memory of the device, of which an expandable segment takes 9/8 in address space; none:
  /// the same as capacity.
  std::optional<Bytes> device_memory;
  /// `set_per_process_memory_fraction` in bytes; none: only the driver limits.
  std::optional<Bytes> memory_limit;
  /// Cached blocks of this size or more are never split (max_split_size_mb).
  Bytes max_split_size = Bytes(std::numeric_limits<std::int64_t>::max());
  /// A request of max_split_size or more takes a cached block that exceeds it by less than this.
  Bytes max_non_split_rounding = Bytes::MiB(20);
  /// Share of memory_limit above which idle cached segments are freed; 0: never.
  double garbage_collection_threshold = 0.0;
  /// Steps between two powers of two that sizes are rounded to, per size class; 0 or 1: off.
  std::array<std::uint32_t, kRoundupClasses> roundup_power2_divisions{};
  /// Segment for requests between 1 and 10 MiB; page of the large pool when expandable.
  Bytes large_segment_size = Bytes::MiB(20);
  /// No setting of PyTorch's: where the driver puts segments, which decides between free blocks of
  /// one size. 0: each below the one before it; n: the n-th of many shuffled orders.
  std::uint32_t segment_order = 0;
  /// Nor this: where a recorded run had its segments, in the order in which it made them, in place
  /// of an order. A segment takes the next place of its size; where none is left it lies below all.
  std::vector<SegmentPlace> recorded_segments;
};

/// Largest rounded size that the small pool serves.
inline constexpr Bytes kSmallRequest = Bytes::MiB(1);

/// Segment of the small pool; also its page when segments are expandable.
inline constexpr Bytes kSmallSegment = Bytes::MiB(2);

/// Smallest block; every block is a multiple of it.
inline constexpr Bytes kMinBlock = Bytes(512);

/// Aborts when a value is outside what PyTorch accepts or the replay supports.
///
///   config   large_segment_size >= 10 MiB and a multiple of 2 MiB, max_split_size >=
///            large_segment_size, 0 <= garbage_collection_threshold < 1, divisions 0 or a power
///            of two, 0 < capacity <= kMaxCapacity
void CheckConfig(const AllocatorConfig& config);

/// Size of the block that a request is served with, before any excess of an unsplit block.
///
///   requested   > 0
///
/// Returns at least 512 bytes: `requested` rounded up to 512 bytes, or to the next of the steps of
/// its size class when roundup_power2_divisions sets any.
Bytes RoundedSize(const AllocatorConfig& config, Bytes requested);

/// Size of the segment that is asked of the driver when no cached block fits.
///
///   rounded   a result of RoundedSize
///
/// Returns 2 MiB up to 1 MiB, large_segment_size below 10 MiB, else `rounded` rounded up to 2 MiB.
Bytes SegmentSize(const AllocatorConfig& config, Bytes rounded);

}  // namespace dcsim
