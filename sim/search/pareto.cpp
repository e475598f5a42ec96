#include "sim/search/pareto.h"

#include <algorithm>
#include <tuple>

namespace dcsim {

bool IsBetter(const Scored& a, const Scored& b) {
  if (a.score.fits() != b.score.fits()) {
    return a.score.fits();
  }
  const auto key = [](const Scored& scored) {
    const Score& score = scored.score;
    return std::tuple(score.step_time, score.peak_reserved, score.peak_allocated);
  };
  if (key(a) != key(b)) {
    return key(a) < key(b);
  }
  return HashOf(a.candidate) < HashOf(b.candidate);
}

bool ParetoFront::Insert(const Scored& scored) {
  if (!scored.score.fits()) {
    return false;
  }
  const auto at = std::lower_bound(members_.begin(), members_.end(), scored,
                                   [](const Scored& member, const Scored& other) {
                                     return member.score.step_time < other.score.step_time;
                                   });
  const Bytes reserved = scored.score.peak_reserved;
  const bool beaten_by_faster = at != members_.begin() && (at - 1)->score.peak_reserved <= reserved;
  const bool beaten_by_equal = at != members_.end() &&
                               at->score.step_time == scored.score.step_time &&
                               at->score.peak_reserved <= reserved;
  if (beaten_by_faster || beaten_by_equal) {
    return false;
  }
  auto end = at;
  while (end != members_.end() && end->score.peak_reserved >= reserved) {
    ++end;
  }
  members_.insert(members_.erase(at, end), scored);
  return true;
}

}  // namespace dcsim
