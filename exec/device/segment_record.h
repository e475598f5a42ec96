#pragma once

#include <vector>

#include <c10/core/Device.h>

#include "model/ir/result.h"

namespace dcsim::exec {

/// Keeps account of the segments that PyTorch's allocator has of a GPU's driver, from now on and
/// for as long as the process lives; once is enough. Slows every call of the allocator.
void RecordSegments(c10::Device device);

/// Those that it has now, in the order in which it got them; none where nothing is recorded.
std::vector<MeasuredSegment> RecordedSegments();

}  // namespace dcsim::exec
