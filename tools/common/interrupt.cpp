#include "tools/common/interrupt.h"

#include <csignal>

namespace dcsim {
namespace {

// A signal handler reaches nothing but globals.
volatile std::sig_atomic_t interrupt_requested = 0;

extern "C" void NoteInterrupt(int signal) {
  interrupt_requested = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

Interrupt::Interrupt() {
  interrupt_requested = 0;
  std::signal(SIGINT, NoteInterrupt);
  std::signal(SIGTERM, NoteInterrupt);
}

Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool Interrupt::requested() const {
  return interrupt_requested != 0;
}

}  // namespace dcsim
