#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/ir/result.h"
#include "model/machine/cluster.h"
#include "sim/analysis/predict.h"
#include "tools/common/load.h"
#include "tools/common/measured_results.h"

namespace dcsim {

/// The cluster with the waiting delays of the measured step's streams, where they were read: those
/// of the rank with the longest, for which the others wait.
Cluster WithDelaysOf(const Result& measured, const Cluster& cluster);

/// Where a measured result's process had its segments, of the rank that reserved most. None where
/// they were not recorded.
std::vector<SegmentPlace> RecordedSegments(const Result& measured);

/// How a measured result's process began: `dc-run` reads the loss after each step to warm up. Where
/// the host was read in the first step it tells whether modules loaded in that.
FirstSteps FirstStepsOf(const Result& measured, const HostCosts& host);

/// The prediction for a plan that was executed on `plan.ranks` GPUs, with segments where the
/// measured process had them, if it recorded that. Throws Error when the cluster has fewer GPUs.
Prediction PredictPlan(const Result& measured,
                       const ProfiledWorkload& loaded,
                       const Plan& plan,
                       const Cluster& cluster,
                       bool keep_timeline);

/// The same prediction with a host of the pace of the measured step's (HostPaces): of all ranks
/// that which makes the step longest, for which the others wait.
struct HostPrediction {
  double slowdown = 1;  // how many times as long as priced it took
  Result predicted;
};

/// None where none of the measured result's ranks read its host. Throws as PredictPlan.
std::optional<HostPrediction> PredictWithHost(const Result& measured,
                                              const ProfiledWorkload& loaded,
                                              const Plan& plan,
                                              const Cluster& cluster);

/// A measured result and the prediction for its plan.
struct MeasuredPair {
  Json document;  // of the measured result
  Result measured;
  Result predicted;
  std::optional<HostPrediction> with_host;  // where the measurement read its hosts
};

/// What a measured result is predicted with.
struct MeasuredOptions {
  std::string workload;  // folder; empty: the nearest folder above the result that holds one
  OpTimes times = OpTimes::kProfiled;
  bool with_host = true;  // whether once more with the host of the measured step, where it was read
};

/// Reads results of `dc-run step` and predicts their plans on one cluster. Results of one workload
/// that follow each other share what was read of it.
class MeasuredPredictor {
 public:
  /// `cluster` outlives this.
  explicit MeasuredPredictor(const Cluster& cluster, MeasuredOptions options = {})
      : cluster_(cluster),
        options_(std::move(options)) {}

  /// Throws Error for what is no measured result, holds no plan, or belongs to another graph.
  MeasuredPair Predict(MeasuredDocument measured);

 private:
  /// With the graph that a measured plan ran.
  const ProfiledWorkload& Load(const std::string& folder, const Json& plan);

  const Cluster& cluster_;
  MeasuredOptions options_;
  std::optional<ProfiledWorkload> loaded_;  // that of the last result
  std::string loaded_from_;                 // its folder and form
};

}  // namespace dcsim
