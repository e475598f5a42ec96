// sweep-numbers COUNT [SEED]: ExerciseNumbers with drawn bytes until COUNT steps were simulated,
// and how many were refused besides. A run that crashes, or lasts longer than ten seconds, says its
// draw.

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

#include "sim/search/random.h"
#include "tests/fuzz/exercise_numbers.h"

namespace {

volatile std::uint64_t current = 0;  // the draw, for the handler

extern "C" void SayDraw(int signal) {
  char text[64];
  const int length = std::snprintf(text, sizeof(text), "signal %d in draw %llu\n", signal,
                                   static_cast<unsigned long long>(current));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) {
    std::_Exit(4);
  }
  std::_Exit(3);
}

bool Simulates(std::uint64_t draw) {
  current = draw;
  constexpr std::size_t kBytes = 48;
  dcsim::Random random(draw);
  std::vector<std::uint8_t> bytes(kBytes);
  for (std::uint8_t& byte : bytes) {
    byte = static_cast<std::uint8_t>(random.Below(256));
  }
  constexpr unsigned kSeconds = 10;
  alarm(kSeconds);
  return dcsim::ExerciseNumbers(dcsim::Draws(bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: sweep-numbers COUNT [SEED]\n", stderr);
    return 2;
  }
  for (const int signal : {SIGFPE, SIGSEGV, SIGABRT, SIGALRM, SIGBUS, SIGILL}) {
    std::signal(signal, SayDraw);
  }
  const std::uint64_t count = std::strtoull(argv[1], nullptr, 10);
  const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::uint64_t simulated = 0;
  std::uint64_t draw = first;
  for (; simulated < count; ++draw) {
    simulated += Simulates(draw) ? 1 : 0;
  }
  std::printf("draws %llu to %llu: %llu simulated to the end, %llu refused or out of memory\n",
              static_cast<unsigned long long>(first), static_cast<unsigned long long>(draw - 1),
              static_cast<unsigned long long>(simulated),
              static_cast<unsigned long long>(draw - first - simulated));
  return 0;
}
