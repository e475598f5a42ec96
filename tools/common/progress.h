#pragma once

#include <chrono>
#include <functional>
#include <string>

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

}  // namespace dcsim
