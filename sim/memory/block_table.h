#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// Names one block of a CachingAllocator. Dense; reused once the block is free.
using BlockHandle = std::uint32_t;

inline constexpr BlockHandle kNoBlock = std::numeric_limits<BlockHandle>::max();

/// Most streams that one allocator serves: a block has a bit for each.
inline constexpr std::size_t kMaxStreams = 64;

/// What a block is doing.
enum class BlockState : std::uint8_t {
  kUnused,          ///< an entry of the table that names no memory
  kFree,            ///< cached: in the free list of its pool
  kAllocated,       ///< handed out
  kAwaitingEvents,  ///< freed by the caller while another stream may still use it
  kUnmapped,        ///< address space of an expandable segment without memory behind it
};

/// A range of one segment. The blocks of a segment tile it; `previous` and `next` are its
/// neighbours by address.
struct Block {
  std::uint64_t address = 0;
  Bytes bytes;
  Bytes requested_bytes;    // what the caller asked for; of the last request when free
  std::uint64_t users = 0;  // bit s: stream s used the block (record_stream)
  BlockHandle previous = kNoBlock;
  BlockHandle next = kNoBlock;
  std::uint32_t segment = 0;
  std::uint16_t pool = 0;
  std::uint8_t pending_events = 0;
  BlockState state = BlockState::kUnused;

  bool IsSplit() const { return previous != kNoBlock || next != kNoBlock; }
  std::uint64_t end() const { return address + static_cast<std::uint64_t>(bytes.count()); }
};

static_assert(sizeof(Block) <= 48);

/// All blocks of an allocator, by handle. Handles of removed blocks are given out again, the last
/// removed first, so the table is as long as the largest number of blocks alive at once.
class BlockTable {
 public:
  Block& operator[](BlockHandle handle) { return blocks_[handle]; }
  const Block& operator[](BlockHandle handle) const { return blocks_[handle]; }

  /// Entries, used and unused: one more than the largest handle given out.
  std::size_t size() const { return blocks_.size(); }

  /// Adds a block. Invalidates references to blocks.
  BlockHandle Add(const Block& block) {
    if (unused_ == kNoBlock) {
      blocks_.push_back(block);
      return static_cast<BlockHandle>(blocks_.size() - 1);
    }
    const BlockHandle handle = unused_;
    unused_ = blocks_[handle].next;
    blocks_[handle] = block;
    return handle;
  }

  /// Adds a block right behind `before` in address order. Invalidates references to blocks.
  BlockHandle AddAfter(BlockHandle before, const Block& block) {
    const BlockHandle handle = Add(block);
    const BlockHandle after = blocks_[before].next;
    blocks_[handle].previous = before;
    blocks_[handle].next = after;
    blocks_[before].next = handle;
    if (after != kNoBlock) {
      blocks_[after].previous = handle;
    }
    return handle;
  }

  /// Joins a block to the neighbour before it, whose handle stays valid; `upper` becomes unused.
  void JoinToPrevious(BlockHandle upper) {
    const BlockHandle lower = blocks_[upper].previous;
    const BlockHandle after = blocks_[upper].next;
    blocks_[lower].bytes += blocks_[upper].bytes;
    blocks_[lower].next = after;
    if (after != kNoBlock) {
      blocks_[after].previous = lower;
    }
    Remove(upper);
  }

  /// Takes a block out of the table. Its neighbours must not refer to it any more.
  void Remove(BlockHandle handle) {
    blocks_[handle].state = BlockState::kUnused;
    blocks_[handle].next = unused_;
    unused_ = handle;
  }

 private:
  std::vector<Block> blocks_;
  BlockHandle unused_ = kNoBlock;  // head of the list of unused entries, linked by `next`
};

}  // namespace dcsim
