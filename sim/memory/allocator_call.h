#pragma once

#include <cstdint>

#include "model/base/ids.h"
#include "model/base/units.h"

namespace dcsim {

/// What an allocator does, by the names of PyTorch's trace of memory.
enum class AllocatorAction : std::uint8_t {
  kAlloc,
  kFreeRequested,  // by the caller
  kFreeCompleted,  // no stream uses it any more
  kSegmentAlloc,   // cudaMalloc
  kSegmentFree,    // cudaFree
  kSegmentMap,     // pages of an expandable segment
  kSegmentUnmap,
  kOutOfMemory,
};

/// One action, on a block or on a segment.
struct AllocatorCall {
  AllocatorAction action = AllocatorAction::kAlloc;
  std::uint64_t address = 0;  // of kOutOfMemory: bytes that the driver still has
  Bytes bytes;                // of the block or the segment; of kOutOfMemory: rounded request
  Bytes requested;            // by the caller; of a segment: the same as bytes
  StreamId stream;
  bool is_small = false;  // of the pool of requests up to 1 MiB
};

}  // namespace dcsim
