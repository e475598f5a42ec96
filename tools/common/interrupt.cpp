#include "tools/common/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace dcsim {
namespace {

// A signal handler reaches nothing but globals, and only lock-free ones.
std::atomic<std::int64_t> first_request_ns = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

constexpr std::int64_t kOneRequestNs = 500'000'000;

std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

extern "C" void NoteInterrupt(int signal) {
  const std::int64_t now = MonotonicNs();
  std::int64_t first = 0;
  if (first_request_ns.compare_exchange_strong(first, now) || now - first < kOneRequestNs) {
    return;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Interrupt::Interrupt()
    : old_interrupt_(std::signal(SIGINT, NoteInterrupt)),
      old_terminate_(std::signal(SIGTERM, NoteInterrupt)) {
  first_request_ns = 0;
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, old_interrupt_);
  std::signal(SIGTERM, old_terminate_);
}

bool Interrupt::requested() const {
  return first_request_ns != 0;
}

}  // namespace dcsim
