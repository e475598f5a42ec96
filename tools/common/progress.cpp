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

ProgressTicker::ProgressTicker(std::function<std::string()> text)
    : text_(std::move(text)),
      thread_([this] { Run(); }) {}

ProgressTicker::~ProgressTicker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void ProgressTicker::Run() {
  constexpr auto kPause = std::chrono::milliseconds(200);
  constexpr double kQuiet = 2;  // seconds: short work says nothing
  Progress progress;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_.wait_for(lock, kPause, [this] { return ends_; })) {
    if (progress.seconds() >= kQuiet) {
      progress.Show(text_);
    }
  }
}

}  // namespace dcsim
