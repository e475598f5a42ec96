// sweep-numbers COUNT [SEED]: ExerciseNumbers with drawn bytes until COUNT steps were simulated,
// and how many were refused besides. A step that lasts longer than ten seconds ends the program.
// Every 10,000 draws it says where it is, so that a crash is found again from there.

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

#include "sim/search/random.h"
#include "tests/fuzz/exercise_numbers.h"

namespace {

bool Simulates(std::uint64_t draw) {
  dcsim::Random random(draw);
  constexpr unsigned kSeconds = 10;
  alarm(kSeconds);
  return dcsim::ExerciseNumbers(random);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: sweep-numbers COUNT [SEED]\n";
    return 2;
  }
  constexpr std::uint64_t kOften = 10'000;
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::uint64_t simulated = 0;
  std::uint64_t draw = first;
  for (; simulated < count; ++draw) {
    if (draw % kOften == 0) {
      std::cerr << "draw " << draw << "\n";
    }
    if (Simulates(draw)) {
      ++simulated;
    }
  }
  std::cout << "draws " << first << " to " << draw - 1 << ": " << simulated
            << " steps simulated to the end, " << draw - first - simulated
            << " refused or out of memory\n";
  return 0;
}
