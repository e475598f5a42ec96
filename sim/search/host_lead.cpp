#include "sim/search/host_lead.h"

namespace dcsim {

std::optional<std::int64_t> HostLead::TogetherBefore(const Contention& contention) const {
  if (!first_ || !last_since_) {
    return std::nullopt;
  }
  const Duration first = contention.IdleWait(Duration::FromNs(first_->since));
  const Duration last = contention.IdleWait(Duration::FromNs(*last_since_));
  if (first == last || (first < last && !decides_)) {
    return std::nullopt;
  }
  return first_->start - *last_since_;
}

}  // namespace dcsim
