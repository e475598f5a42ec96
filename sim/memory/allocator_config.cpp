#include "sim/memory/allocator_config.h"

#include <algorithm>
#include <bit>

#include "model/base/error.h"

namespace dcsim {
namespace {

constexpr Bytes kMinLargeRequest = Bytes::MiB(10);
constexpr Bytes kLargeRounding = Bytes::MiB(2);
constexpr int kFirstClassLog2 = 20;  // 1 MiB

std::uint32_t DivisionsFor(const AllocatorConfig& config, std::uint64_t bytes) {
  const int log2 = static_cast<int>(std::bit_width(bytes)) - 1;
  const int last = static_cast<int>(kRoundupClasses) - 1;
  const int size_class = std::clamp(log2 - kFirstClassLog2, 0, last);
  return config.roundup_power2_divisions[static_cast<std::size_t>(size_class)];
}

// Next of the `divisions` equal steps between the powers of two around `bytes`.
std::uint64_t RoundToDivision(std::uint64_t bytes, std::uint32_t divisions) {
  const std::uint64_t step = std::bit_floor(bytes) / divisions;
  return (bytes + step - 1) / step * step;
}

}  // namespace

void CheckConfig(const AllocatorConfig& config) {
  DCSIM_CHECK(config.capacity > Bytes(0) && config.capacity <= kMaxCapacity);
  DCSIM_CHECK(config.large_segment_size >= kMinLargeRequest);
  DCSIM_CHECK(config.large_segment_size.count() % kSmallSegment.count() == 0);
  DCSIM_CHECK(config.max_split_size >= config.large_segment_size);
  DCSIM_CHECK(config.garbage_collection_threshold >= 0.0 &&
              config.garbage_collection_threshold < 1.0);
  for (const std::uint32_t divisions : config.roundup_power2_divisions) {
    DCSIM_CHECK(divisions == 0 || std::has_single_bit(divisions));
  }
}

Bytes RoundedSize(const AllocatorConfig& config, Bytes requested) {
  if (requested < kMinBlock) {
    return kMinBlock;
  }
  const auto bytes = static_cast<std::uint64_t>(requested.count());
  const std::uint32_t divisions = DivisionsFor(config, bytes);
  if (divisions > 1 && requested > kMinBlock * divisions) {
    return Bytes(static_cast<std::int64_t>(RoundToDivision(bytes, divisions)));
  }
  return Bytes(RoundUp(requested.count(), kMinBlock.count()));
}

Bytes SegmentSize(const AllocatorConfig& config, Bytes rounded) {
  if (rounded <= kSmallRequest) {
    return kSmallSegment;
  }
  if (rounded < kMinLargeRequest) {
    return config.large_segment_size;
  }
  return Bytes(RoundUp(rounded.count(), kLargeRounding.count()));
}

}  // namespace dcsim
