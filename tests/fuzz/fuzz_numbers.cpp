// Any bytes as numbers of a cluster and its GPU, far from those that were measured: a small step is
// simulated, or the numbers are refused.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/exercise_numbers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dcsim::ExerciseNumbers(dcsim::Draws({data, size}));
  return 0;
}
