#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// Buffers alive when most bytes are, as requested, in a step that is not the first.
struct LivePeak {
  TaskId task;  // during whose allocator calls; None(): before the first
  Bytes bytes;
  std::vector<BufferId> alive;  // ascending
};

/// Follows the allocator calls in host order; no simulation is needed for it.
LivePeak FindLivePeak(const Schedule& schedule);

/// The bytes of buffers by class, classes without any left out.
std::vector<ClassBytes> BytesByClass(std::span<const BufferId> buffers, const Schedule& schedule);

/// Buffers of one class and origin.
struct HolderGroup {
  BufferClass buffer_class = BufferClass::kActivation;
  std::string origin;  // what made them, numbers as '#', such as "aten::mm model.layers.#.mlp"
  Bytes bytes;
  std::size_t buffers = 0;
};

/// The alive buffers by class and origin, most bytes first. Activations and gradients come from the
/// op that makes them, gathered parameters from their names; other classes have no origin.
std::vector<HolderGroup> GroupHolders(const LivePeak& peak,
                                      const Schedule& schedule,
                                      const Graph& graph);

/// "model.layers.17.mlp" -> "model.layers.#.mlp".
std::string WithoutNumbers(const std::string& name);

}  // namespace dcsim
