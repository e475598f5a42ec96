#include "tools/common/progress.h"

#include <iostream>
#include <unistd.h>

namespace dcsim {

Progress::Progress()
    : start_(std::chrono::steady_clock::now()),
      terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  Clear();
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::Clear() {
  if (is_shown_ && terminal_) {
    std::cerr << "\r\033[K" << std::flush;
  }
  is_shown_ = false;
}

void Progress::Show(const std::function<std::string()>& text) {
  const double interval = terminal_ ? 0.2 : 10.0;
  if (seconds() < shown_at_ + interval) {
    return;
  }
  const std::string line = text();
  Clear();
  std::cerr << line << (terminal_ ? "" : "\n") << std::flush;
  is_shown_ = true;
  shown_at_ = seconds();
}

void Progress::Finish(const std::string& text) {
  Clear();
  std::cerr << text << "\n";
}

}  // namespace dcsim
