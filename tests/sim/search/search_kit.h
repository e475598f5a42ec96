#pragma once

#include <cstdint>
#include <string>

#include "model/machine/cluster.h"
#include "sim/search/search.h"

namespace dcsim {

/// A chain of `layers` products, forward and backward, whose weights have 32 to 60 MiB:
/// ZeRO-3 gathers each of them in the forward, and all but the first in the backward.
Graph ProductChain(int layers);

/// A space of ZeRO-3 with one bucket size. `options` may add dimensions.
SearchSpace SmallSpace(std::int64_t most_ahead, const Json& options = Json::object());

}  // namespace dcsim
