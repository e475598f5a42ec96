#pragma once

#include <optional>
#include <vector>

#include "model/ir/result.h"
#include "sim/analysis/predict.h"

namespace dcsim {

/// How many times as long the hosts of a measured step took for the ops that were read
/// (HostReading) as these are priced: the slowest rank's, which all others wait for. Of ranks that
/// were read in less than half of a step nothing is known. None where that is so of all.
///
/// Throws Error when the cluster cannot price a task (EstimateWorks).
std::optional<double> HostSlowdown(const std::vector<RankReadings>& ranks,
                                   const Schedule& schedule,
                                   const PredictionInputs& inputs);

}  // namespace dcsim
