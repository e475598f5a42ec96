#pragma once

#include <vector>

#include "model/ir/result.h"
#include "sim/analysis/predict.h"

namespace dcsim {

/// The host of one rank of a measured step, beside the host as priced.
struct HostPace {
  double slowdown = 1;  // how many times as long as priced it took for all ops that were read
  std::vector<TaskPace> tasks;  // the same for each task of the schedule, for SimulationOptions
};

/// How long the hosts of a measured step took (HostReading), of each rank that read any op: a
/// stretch that was read takes what it took, its ops and the tasks between them each for
/// themselves, unless its kernels and those of the two before it fill the launch queue, in which
/// the host may have waited; others, of which the host was ahead of the GPU, the mean of those that
/// were read but the first, or what they are priced at; what comes behind a reading the mean of all
/// of it. Where tasks between ops were not read they slow down as the ops do.
///
/// Throws Error when the cluster cannot price a task (EstimateWorks).
std::vector<HostPace> HostPaces(const std::vector<RankReadings>& ranks,
                                const Schedule& schedule,
                                const PredictionInputs& inputs);

}  // namespace dcsim
