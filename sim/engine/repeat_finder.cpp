#include "sim/engine/repeat_finder.h"

#include <algorithm>
#include <utility>

namespace dcsim {

std::optional<RepeatFinder::Stretch> RepeatFinder::Find(MicroStepState now) {
  const std::size_t here = seen_.size();
  seen_.push_back(std::move(now));
  const MicroStepState& end = seen_.back();
  const std::size_t begun = std::max(here, end.newest + 1);
  if (begun >= micro_steps_.count()) {
    return std::nullopt;
  }
  const std::size_t listed = micro_steps_.count() - 1 - begun;  // that the stretch may stand for
  for (std::size_t from = here - 1; from > 0 && from >= repetition_.from; --from) {
    const std::size_t length = here - from;
    const std::size_t times = (repetition_.left_out + listed) / length;
    const MicroStepState& begin = seen_[from];
    if (length % kMicroStepPeriod == 0 && times * length >= repetition_.left_out &&
        begin.oldest >= std::max<std::size_t>(1, repetition_.from) && begin.state == end.state &&
        (begin.apart == end.apart || begin.since == end.since)) {
      found_ = true;
      return Stretch{from, times, times * length - repetition_.left_out, begin.apart != end.apart};
    }
  }
  return std::nullopt;
}

void RepeatFinder::EndStep() const {
  if (!found_) {
    throw DoesNotRepeat();
  }
}

}  // namespace dcsim
