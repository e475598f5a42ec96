#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/search/random.h"

namespace dcsim {

/// Where the numbers of a step come from: bytes, behind whose end there are zeros.
class Draws {
 public:
  explicit Draws(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return next_ >= bytes_.size(); }
  /// Of two bytes, the first one higher.
  std::uint64_t Take() { return Byte() << 8U | Byte(); }

 private:
  std::uint64_t Byte() { return empty() ? 0 : bytes_[next_++]; }

  std::span<const std::uint8_t> bytes_;
  std::size_t next_ = 0;
};

/// One of the committed clusters (DCSIM_SOURCE_DIR), numbers of which are up to 10^5 times as large
/// or as small as they are, and a small step on it: whether it was simulated. Otherwise a reader or
/// the pricing refused it. Aborts where a promise is broken; no time or amount of memory may be
/// negative.
bool ExerciseNumbers(Draws draws);

/// The same with bytes from a generator, as many as a step takes at most.
bool ExerciseNumbers(Random& random);

}  // namespace dcsim
