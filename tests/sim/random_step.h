#pragma once

#include <cstdint>
#include <string>

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"

namespace dcsim {

/// A small workload and a plan for it, decided by a seed.
struct RandomStep {
  Graph graph;
  Profile profile;  // of some of the ops, with temporaries in their footprints
  Plan plan;
};

/// Text of a graph of 1 to 6 layers: matrix products, biases, views, recomputed ops; weights of two
/// dtypes, tied, frozen; gradients that share a storage; held outputs; one graph or two.
std::string RandomGraphText(std::uint64_t seed);

/// Such a graph, a profile, and a plan with every option drawn at random. Half of the plans are
/// not what a policy would decide: ops in another topological order, gathers in groups and ahead.
RandomStep MakeRandomStep(std::uint64_t seed);

}  // namespace dcsim
