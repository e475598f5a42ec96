#include "sim/engine/rank_spread.h"

#include <algorithm>
#include <cmath>

namespace dcsim {

RankSpread::RankSpread(std::span<const Occupied> compute, Duration drift) : drift_(drift) {
  before_.reserve(compute.size() + 1);
  Sums sums;
  before_.push_back(sums);
  for (const Occupied& task : compute) {
    sums.time += task.device.ns();
    if (task.room > Duration()) {
      sums.filled += task.device.ns();
      sums.filled_room += task.device.ns() * task.room.ns();
    }
    before_.push_back(sums);
  }
}

Duration RankSpread::LastStart(std::size_t position,
                               Duration hold,
                               Duration apart,
                               int ranks) const {
  const auto later = [](std::int64_t time, const Sums& sums) { return time < sums.time; };
  const std::int64_t from = before_[position].time - drift_.ns();
  const std::int64_t to = before_[position + 1].time + drift_.ns();
  const auto above = std::upper_bound(before_.begin(), before_.end(), from, later);
  const Sums& first = above == before_.begin() ? before_.front() : *std::prev(above);
  const Sums& last = *std::prev(std::upper_bound(before_.begin(), before_.end(), to, later));
  const auto filled = static_cast<double>(last.filled - first.filled);
  if (filled == 0) {
    return hold;
  }
  const double share = filled / static_cast<double>(last.time - first.time);
  const double length = static_cast<double>(last.filled_room - first.filled_room) / filled;
  const auto own = static_cast<double>(hold.ns());
  if (own >= length) {
    return hold;
  }
  const double found = 1 - share + share * own / length;
  double all_found = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    all_found *= found;
  }
  const double start = length - length / share * (1 - all_found) / ranks;
  const double independent = std::min(1.0, static_cast<double>(apart.ns()) / length);
  return hold + Duration::FromNs(std::llround((start - own) * independent));
}

}  // namespace dcsim
