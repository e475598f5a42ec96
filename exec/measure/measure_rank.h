#pragma once

#include "exec/measure/measure_steps.h"

namespace dcsim::exec {

/// Builds one rank, executes its schedule and measures it; its memory is given back before it
/// returns. Throws RankOutOfMemory naming rank and task when the device has none left.
RankMeasurement MeasureRank(const RankSetup& setup, int rank, const MeasureSettings& settings);

/// The same for a rank that is a thread, on CPU tensors.
RankMeasurement MeasureCpuRank(const Graph& graph,
                               const Schedule& schedule,
                               Communicator& communicator,
                               std::uint64_t seed,
                               const MeasureSettings& settings);

}  // namespace dcsim::exec
