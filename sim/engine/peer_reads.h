#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace dcsim {

/// When one rank read other ranks' memory by copy engines. Times in ns do not descend.
class PeerReads {
 public:
  /// It reads from `now` on; not while it does.
  void Begin(std::int64_t now) { reads_.push_back({now, kReading, Total()}); }
  /// It reads no more. What ended more than `kept` before may be forgotten.
  void End(std::int64_t now, std::int64_t kept);

  /// Whether it read nothing that is not forgotten.
  bool empty() const { return reads_.empty(); }
  bool reading() const { return !reads_.empty() && reads_.back().to == kReading; }
  /// For how much of the time from `from` until `now`, not before what was last told, it read; of
  /// what is forgotten nothing counts.
  std::int64_t Within(std::int64_t from, std::int64_t now) const;

  /// Adds to `state` what it read from `kept` before `now` on, in times since `now`.
  void AddState(std::int64_t now, std::int64_t kept, std::vector<std::int64_t>& state) const;

 private:
  static constexpr std::int64_t kReading = -1;

  struct Read {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::int64_t before = 0;  // read in all until `from`
  };

  std::int64_t Total() const {
    return reads_.empty() ? 0 : reads_.back().before + reads_.back().to - reads_.back().from;
  }

  std::deque<Read> reads_;  // in the order of time
};

}  // namespace dcsim
