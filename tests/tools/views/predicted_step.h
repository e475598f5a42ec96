#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/result.h"
#include "model/ir/schedule.h"
#include "model/ir/timeline.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// A graph and everything that follows from it on a cluster: what views are made from.
struct PredictedStep {
  PredictedStep(Graph the_graph, const PlanSpec& spec, int ranks);  // on HandCluster
  PredictedStep(Graph the_graph, const PlanSpec& spec, int ranks, Cluster the_cluster);

  Graph graph;
  Cluster cluster;
  Schedule schedule;
  Result result;
  Timeline timeline;
};

/// Text of a graph of `layers` alike layers of two matrix products (modules model.layers.N.up and
/// .down), between an embedding (model.embed) and a head, forward and backward.
std::string StackText(int layers);

/// ZeRO-3 of a stack on 2 ranks, one bucket.
PredictedStep PredictStack(int layers);

/// ZeRO-3 of a committed workload on eight H200s, as if nobody had profiled it.
PredictedStep PredictWorkload(const std::string& workload);

}  // namespace dcsim
