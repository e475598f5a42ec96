#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cost/cluster.h"
#include "model/ir/result.h"
#include "sim/analysis/predict.h"
#include "tools/common/load.h"

namespace dcsim {

/// The cluster with the waiting delays of the measured step's streams, where they were read: those
/// of the rank with the longest, for which the others wait.
Cluster WithDelaysOf(const Result& measured, const Cluster& cluster);

/// Where a measured result's process had its segments: addresses in the order in which they were
/// made, of the rank that reserved most. None where they were not recorded.
std::vector<std::uint64_t> SegmentAddresses(const Result& measured);

/// The prediction for a plan that was executed on `plan.ranks` GPUs, with the workload's profile of
/// the cluster's GPU where there is one and `times` asks for it, and with segments where the
/// measured process had them, if it recorded that. Throws Error when the cluster has fewer GPUs.
Prediction PredictPlan(const Result& measured,
                       const Workload& workload,
                       const Plan& plan,
                       const Cluster& cluster,
                       bool keep_timeline,
                       OpTimes times = OpTimes::kProfiled);

/// The same prediction with a host of the pace of the measured step's (HostPaces): of all ranks
/// that which makes the step longest, for which the others wait.
struct HostPrediction {
  double slowdown = 1;  // how many times as long as priced it took
  Result predicted;
};

/// None where none of the measured result's ranks read its host. Throws as PredictPlan.
std::optional<HostPrediction> PredictWithHost(const Result& measured,
                                              const Workload& workload,
                                              const Plan& plan,
                                              const Cluster& cluster,
                                              OpTimes times = OpTimes::kProfiled);

/// A measured result, from its file, and the prediction for its plan.
struct MeasuredPair {
  Json document;  // of the measured result
  Result measured;
  Result predicted;
  std::optional<HostPrediction> with_host;  // where the measurement read its hosts
};

/// Reads a result of `dc-run step` and predicts its plan on the cluster.
///
///   workload   folder; empty: the nearest folder above the file that holds a workload
///
/// Throws Error for files that are no measured result, hold no plan, or belong to another graph.
MeasuredPair PredictMeasured(const std::string& file,
                             const std::string& workload,
                             const Cluster& cluster,
                             OpTimes times = OpTimes::kProfiled);

}  // namespace dcsim
