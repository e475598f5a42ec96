#include "model/ir/timeline.h"

#include <array>

namespace dcsim {

std::string_view StallReasonName(StallReason reason) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "host", "event", "communicator"};
  return kNames[static_cast<std::size_t>(reason)];
}

std::string_view OriginName(Origin origin) {
  return origin == Origin::kPredicted ? "predicted" : "measured";
}

}  // namespace dcsim
