#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/memory/block_table.h"

namespace dcsim {

/// The free blocks of one stream in one pool, ordered by size, then by address: the order in which
/// PyTorch looks for the best fit.
///
/// Sizes are sorted into sixteen bins per power of two, each bin a flat sorted vector of 8 bytes a
/// block, with one bit per bin that says whether it holds any: a search looks at one bin and one
/// or two words of bits, an insertion moves the few entries behind it in its bin.
///
/// The list holds copies of the sizes: a block that is in the list keeps its size and address until
/// `RemoveAt`.
class FreeBlocks {
 public:
  /// Where in the list a block is; valid until the next change of the list.
  struct Position {
    std::uint32_t bin = kBins;
    std::uint32_t index = 0;

    bool is_end() const { return bin == kBins; }
  };

  BlockHandle at(Position position) const {
    return static_cast<BlockHandle>(bins_[position.bin][position.index]);
  }

  /// The smallest block of at least `bytes`, lowest address among equals; the end if none.
  Position FindBestFit(Bytes bytes) const;

  /// The block that follows in the order, or the end.
  Position Next(Position position) const {
    ++position.index;
    return position.index < bins_[position.bin].size() ? position : FirstFrom(position.bin + 1);
  }

  /// The largest block, highest address among equals; the end if the list is empty.
  Position Largest() const;

  /// Where a block that is in the list is.
  Position Find(const BlockTable& blocks, BlockHandle block) const;

  /// Adds a block by its size and address in `blocks`.
  void Insert(const BlockTable& blocks, BlockHandle block);

  void RemoveAt(Position position);

  /// All blocks in order.
  std::vector<BlockHandle> ToVector() const;

 private:
  // Size in units of 512 bytes in the upper half, handle in the lower.
  using Entry = std::uint64_t;
  using Bin = std::vector<Entry>;

  static constexpr std::uint32_t kWords = 8;
  static constexpr std::uint32_t kBins = kWords * 64;

  static std::uint32_t BinOf(std::uint64_t units);
  static std::uint32_t LowerBound(const Bin& bin, Entry key);
  static std::uint32_t IndexFor(const BlockTable& blocks, const Bin& bin, const Block& block);

  Position FirstFrom(std::uint32_t bin) const;

  std::vector<Bin> bins_;  // none before the first insertion, else kBins
  std::array<std::uint64_t, kWords> occupied_{};
};

}  // namespace dcsim
