#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace dcsim {

/// Progress of a long command on stderr: one line that is written over on a terminal, a plain line
/// every ten seconds elsewhere.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows what `text` returns if the last one is old enough; else `text` is not called.
  void Show(const std::function<std::string()>& text);
  /// Leaves `text` behind as the last line.
  void Finish(const std::string& text);

  /// Since construction.
  double seconds() const;

 private:
  void Clear();

  std::chrono::steady_clock::time_point start_;
  double shown_at_ = 0;
  bool terminal_;
  bool is_shown_ = false;
};

/// Shows progress from a thread of its own for as long as it lives, from the third second on.
class ProgressTicker {
 public:
  /// `text` is called on that thread.
  explicit ProgressTicker(std::function<std::string()> text);
  ~ProgressTicker();
  ProgressTicker(const ProgressTicker&) = delete;
  ProgressTicker& operator=(const ProgressTicker&) = delete;

 private:
  void Run();

  std::function<std::string()> text_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace dcsim
