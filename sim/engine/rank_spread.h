#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/units.h"

namespace dcsim {

/// When the last rank starts a collective that all of them have reached beside compute.
///
/// Ranks drift apart: each meets the collective at another place of the same stretch of kernels.
/// With p the share of that stretch in which a kernel leaves no room and L the mean of its length,
/// weighted by time, a rank finds room after x or less with F(x) = 1 - p + p x / L. One that has
/// found it after h expects the last of n ranks at
///
///   h + integral from h to L of (1 - F(x)^(n-1)) dx  =  L - (L / p) (1 - F(h)^n) / n
///
/// so no length is fitted, only how far the stretch reaches (docs/costs.md, Contention).
class RankSpread {
 public:
  /// What one task of the compute stream tells: its time alone, and the longest wait for room
  /// beside it.
  struct Occupied {
    Duration device;
    Duration room;
  };

  RankSpread() = default;
  RankSpread(std::span<const Occupied> compute, Duration drift);

  /// From reaching the collective to the last rank's start, for a rank that reached it beside
  /// compute task `position` and found room after `hold`; at least `hold`.
  Duration LastStart(std::size_t position, Duration hold, Duration apart, int ranks) const;

 private:
  struct Sums {
    std::int64_t time = 0;         // ns, of all tasks before
    std::int64_t filled = 0;       // of those beside which there is a wait
    std::int64_t filled_room = 0;  // ns^2: time x wait
  };
  std::vector<Sums> before_;  // by position, one more than tasks
  Duration drift_;
};

}  // namespace dcsim
