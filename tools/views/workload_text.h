#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/ir/profile.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// What a recorded workload holds:
///
///   qwen3-8b, recorded by: python -m dcrecord qwen3-8b --batch 1 --seq 4096 -o traces/qwen3-8b
///
///   parameters            8,190,735,360 in 399 tensors, 15.3 GiB
///   forward                       3,978 ops, 1,872 of them without a kernel
///   …
std::string PrintWorkloadText(const Graph& graph);

/// What a compiled form of it holds:
///
///   compiled by Inductor for ZeRO-3
///   forward graph            613   ops, 0 of them views without a kernel, 217 launches of 12
///                                  Triton kernels
///   …
std::string PrintFormText(const Graph& compiled);

/// How much of the workload, or of a compiled form, is measured on a cluster's GPU, the share of
/// each op class in the estimate, and the command that measures what is missing.
std::string PrintCoverageText(const Graph& graph,
                              const Profile* profile,
                              const Cluster& cluster,
                              const std::string& folder);

}  // namespace dcsim
