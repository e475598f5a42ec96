#pragma once

#include <array>

#include "model/base/units.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// How much later each kernel of the compute stream starts while a stream waits for an event, by
/// stream; several that wait add up. The GPU turns to every waiting stream whose channel shares the
/// compute stream's front end, which chance decides (docs/design/costs/side_streams.md). 0 for
/// the compute stream itself.
using WaitingDelays = std::array<Duration, kStreamCount>;

}  // namespace dcsim
