#include "sim/engine/peer_reads.h"

#include <algorithm>
#include <iterator>

namespace dcsim {

void PeerReads::End(std::int64_t now, std::int64_t kept) {
  reads_.back().to = now;
  while (reads_.front().to < now - kept) {
    reads_.pop_front();
  }
}

void PeerReads::AddState(std::int64_t now,
                         std::int64_t kept,
                         std::vector<std::int64_t>& state) const {
  for (const Read& read : reads_) {
    if (read.to == kReading || read.to > now - kept) {
      state.push_back(std::max(read.from - now, -kept));
      state.push_back(read.to == kReading ? 1 : read.to - now);
    }
  }
  state.push_back(2);  // ends the list
}

std::int64_t PeerReads::Within(std::int64_t from, std::int64_t now) const {
  if (reads_.empty()) {
    return 0;
  }
  const auto until = [&](std::int64_t at) {
    const auto after = std::ranges::upper_bound(reads_, at, {}, &Read::from);
    if (after == reads_.begin()) {
      return reads_.front().before;
    }
    const Read& last = *std::prev(after);
    return last.before + (last.to == kReading ? at : std::min(at, last.to)) - last.from;
  };
  return until(now) - until(from);
}

}  // namespace dcsim
