#pragma once

#include <span>
#include <string>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "sim/engine/observer.h"

namespace dcsim {

/// What the allocator did, as `torch.cuda.memory._snapshot()` pickles it: its actions in order, and
/// the segments with their blocks at the end. The stack of a block is one frame: the module, then
/// the tensor's class and operator, and as line the number of the op.
///
///   events   of a simulation of the schedule, whole
std::string PrintMemorySnapshot(std::span<const AllocatorEvent> events,
                                const Schedule& schedule,
                                const Graph& graph);

}  // namespace dcsim
