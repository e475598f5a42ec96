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
    if (at < reads_.front().from) {
      return reads_.front().before;
    }
    const bool latest = at >= reads_.back().from;  // most are asked for up to now
    const Read& last =
        latest ? reads_.back() : *std::prev(std::ranges::upper_bound(reads_, at, {}, &Read::from));
    return last.before + (last.to == kReading ? at : std::min(at, last.to)) - last.from;
  };
  return until(now) - until(from);
}

}  // namespace dcsim
