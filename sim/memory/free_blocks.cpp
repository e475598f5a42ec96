#include "sim/memory/free_blocks.h"

#include "model/base/error.h"
#include "sim/memory/allocator_config.h"

namespace dcsim {
namespace {

constexpr int kHandleBits = 32;
constexpr int kBinBits = 4;  // log2 of the bins per power of two

std::uint64_t Units(Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.count()) / static_cast<std::uint64_t>(kMinBlock.count());
}

}  // namespace

// The first bits of the size: its power of two and the kBinBits bits behind. Sizes below 32 units
// have a bin each.
std::uint32_t FreeBlocks::BinOf(std::uint64_t units) {
  constexpr std::uint64_t kSmallest = (std::uint64_t{2} << kBinBits) - 1;
  const int shift = static_cast<int>(std::bit_width(units | kSmallest)) - kBinBits - 1;
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(shift) << kBinBits) +
                                    (units >> shift));
}

// Index of the first entry that is not less than `key`.
std::uint32_t FreeBlocks::LowerBound(const Bin& bin, Entry key) {
  const Entry* base = bin.data();
  std::size_t count = bin.size();
  if (count == 0) {
    return 0;
  }
  while (count > 1) {
    const std::size_t half = count / 2;
    // Arithmetic, not a branch: which way a step goes cannot be predicted.
    base += half & (std::size_t{0} - static_cast<std::size_t>(base[half - 1] < key));
    count -= half;
  }
  return static_cast<std::uint32_t>(base - bin.data()) + (*base < key ? 1U : 0U);
}

// Index at which the block is in its bin or belongs there.
std::uint32_t FreeBlocks::IndexFor(const BlockTable& blocks, const Bin& bin, const Block& block) {
  const std::uint64_t units = Units(block.bytes);
  std::uint32_t begin = LowerBound(bin, units << kHandleBits);
  if (begin == bin.size() || (bin[begin] >> kHandleBits) != units) {
    return begin;
  }
  // Blocks of the same size: the handles are in no order, so compare addresses.
  std::uint32_t end = LowerBound(bin, (units + 1) << kHandleBits);
  while (begin < end) {
    const std::uint32_t middle = begin + (end - begin) / 2;
    if (blocks[static_cast<BlockHandle>(bin[middle])].address < block.address) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

FreeBlocks::Position FreeBlocks::FirstFrom(std::uint32_t bin) const {
  std::uint32_t word = bin / 64;
  if (word == kWords) {
    return {};
  }
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (bin % 64));
  while (bits == 0) {
    if (++word == kWords) {
      return {};
    }
    bits = occupied_[word];
  }
  return {.bin = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)), .index = 0};
}

FreeBlocks::Position FreeBlocks::FindBestFit(Bytes bytes) const {
  if (bytes > kMaxCapacity || bins_.empty()) {
    return {};
  }
  const std::uint64_t units = Units(bytes);
  const std::uint32_t bin = BinOf(units);
  const std::uint32_t index = LowerBound(bins_[bin], units << kHandleBits);
  if (index < bins_[bin].size()) {
    return {.bin = bin, .index = index};
  }
  return FirstFrom(bin + 1);
}

FreeBlocks::Position FreeBlocks::Largest() const {
  for (std::uint32_t word = kWords; word-- > 0;) {
    if (occupied_[word] != 0) {
      const auto bin = static_cast<std::uint32_t>(std::bit_width(occupied_[word])) - 1 + word * 64;
      return {.bin = bin, .index = static_cast<std::uint32_t>(bins_[bin].size()) - 1};
    }
  }
  return {};
}

FreeBlocks::Position FreeBlocks::Find(const BlockTable& blocks, BlockHandle block) const {
  const std::uint32_t bin = BinOf(Units(blocks[block].bytes));
  const std::uint32_t index = IndexFor(blocks, bins_[bin], blocks[block]);
  const Position position{.bin = bin, .index = index};
  DCSIM_CHECK(index < bins_[bin].size() && at(position) == block) << "block is not free";
  return position;
}

void FreeBlocks::Insert(const BlockTable& blocks, BlockHandle block) {
  if (bins_.empty()) {
    bins_.resize(kBins);
  }
  const std::uint64_t units = Units(blocks[block].bytes);
  const std::uint32_t bin = BinOf(units);
  const std::uint32_t index = IndexFor(blocks, bins_[bin], blocks[block]);
  bins_[bin].insert(bins_[bin].begin() + index, (units << kHandleBits) | block);
  occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
}

void FreeBlocks::RemoveAt(Position position) {
  Bin& bin = bins_[position.bin];
  bin.erase(bin.begin() + position.index);
  if (bin.empty()) {
    occupied_[position.bin / 64] &= ~(std::uint64_t{1} << (position.bin % 64));
  }
}

std::vector<BlockHandle> FreeBlocks::ToVector() const {
  std::vector<BlockHandle> blocks;
  for (Position position = FirstFrom(0); !position.is_end(); position = Next(position)) {
    blocks.push_back(at(position));
  }
  return blocks;
}

}  // namespace dcsim
