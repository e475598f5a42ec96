#include "exec/device/segment_record.h"

#include <algorithm>
#include <cstdint>
#include <mutex>

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>

namespace dcsim::exec {
namespace {

struct Segment {
  std::size_t address = 0;
  std::size_t bytes = 0;
};

/// The allocator calls back from whichever thread asks it for memory.
struct Record {
  std::mutex mutex;
  std::vector<Segment> segments;
};

Record& TheRecord() {
  static Record record;
  return record;
}

void Follow(const c10::cuda::CUDACachingAllocator::TraceEntry& entry) {
  if (entry.action_ != entry.SEGMENT_ALLOC && entry.action_ != entry.SEGMENT_FREE) {
    return;
  }
  const auto address = static_cast<std::size_t>(entry.addr_);
  Record& record = TheRecord();
  const std::scoped_lock lock(record.mutex);
  if (entry.action_ == entry.SEGMENT_ALLOC) {
    record.segments.push_back({address, static_cast<std::size_t>(entry.size_)});
  } else {
    std::erase_if(record.segments,
                  [address](const Segment& segment) { return segment.address == address; });
  }
}

}  // namespace

void RecordSegments(c10::Device device) {
  static std::once_flag attached;
  std::call_once(attached, [device] {
    at::globalContext().lazyInitDevice(device.type());  // an allocator has to be there to be asked
    c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(Follow);
  });
}

std::vector<MeasuredSegment> RecordedSegments() {
  Record& record = TheRecord();
  const std::scoped_lock lock(record.mutex);
  std::size_t lowest = SIZE_MAX;
  for (const Segment& segment : record.segments) {
    lowest = std::min(lowest, segment.address);
  }
  std::vector<MeasuredSegment> segments;
  for (const Segment& segment : record.segments) {
    segments.push_back({Bytes(static_cast<std::int64_t>(segment.address - lowest)),
                        Bytes(static_cast<std::int64_t>(segment.bytes))});
  }
  return segments;
}

}  // namespace dcsim::exec
