#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dcsim {

/// A set of small numbers in each row.
class BitTable {
 public:
  BitTable(std::size_t rows, std::size_t columns)
      : words_((columns + kBits - 1) / kBits),
        bits_(rows * words_) {}

  void Set(std::size_t row, std::size_t column) {
    bits_[row * words_ + column / kBits] |= std::uint64_t{1} << (column % kBits);
  }
  bool Has(std::size_t row, std::size_t column) const {
    return (bits_[row * words_ + column / kBits] >> (column % kBits) & 1U) != 0;
  }
  /// Adds the members of row `from` to row `row`.
  void Merge(std::size_t row, std::size_t from) {
    for (std::size_t word = 0; word < words_; ++word) {
      bits_[row * words_ + word] |= bits_[from * words_ + word];
    }
  }
  std::size_t Count(std::size_t row) const {
    std::size_t count = 0;
    for (std::size_t word = 0; word < words_; ++word) {
      count += static_cast<std::size_t>(std::popcount(bits_[row * words_ + word]));
    }
    return count;
  }
  /// Calls `visit` with each member of a row, ascending.
  template <typename Visit>
  void ForEach(std::size_t row, Visit visit) const {
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t rest = bits_[row * words_ + word]; rest != 0; rest &= rest - 1) {
        visit(word * kBits + static_cast<std::size_t>(std::countr_zero(rest)));
      }
    }
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace dcsim
