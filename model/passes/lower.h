#pragma once

#include "model/ir/graph.h"
#include "model/ir/plan.h"
#include "model/ir/profile.h"
#include "model/ir/schedule.h"

namespace dcsim {

/// Device memory that a process holds besides its tensors, once it has multiplied matrices.
/// Belongs to the GPU, so the cluster states it.
struct Workspaces {
  std::vector<Bytes> of_products;  // cuBLAS's, from the first product on
  std::vector<Bytes> of_biases;    // cuBLASLt's, from the first product on that adds a bias
};

/// Spells a plan out as one optimizer step: every task in host issue order, with its stream, the
/// events it waits for, what it allocates, uses and frees. docs/design/schedules.md walks through
/// one.
///
///   plan     checked by FindPlanFaults
///   profile  footprints of the ops' own temporaries, or null for none
///
/// ZeRO-1, 2 and 3 as DeepCompile executes them (csrc/compile of DeepSpeed 0.19.6); with eager
/// gradient buckets as DeepSpeed's stage_1_and_2.py and stage3.py do.
Schedule Lower(const Plan& plan,
               const Graph& graph,
               const Profile* profile,
               const Workspaces& workspaces);

}  // namespace dcsim
