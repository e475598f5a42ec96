#pragma once

#include <optional>
#include <span>

#include "model/cost/collective_traits.h"

namespace dcsim {

struct CopyEngines;

/// How many times as long copies from other GPUs take where all ranks gather, and have drifted
/// apart: of n ranks each of n - 2 others reads from the same GPU in a (n - 1)th of its time.
double CrowdedCopies(const CopyEngines& engines, int ranks);

/// Time of one gather by copy engines (docs/design/costs/copy_engines.md):
///
///   start + sum over its tensors of (ranks * copy + (ranks - 1) * shard / rate * crowded + own)
///
/// where own is the copy of the rank's own shard within its GPU.
///
///   tensors   the gather's calls: a full tensor each, wherever it begins
///   ranks     >= 1; one rank copies on its own GPU alone, tensor by tensor, each no shorter than
///             the shortest kernel
///
/// Measured where the cluster says what its copy engines do, for as many ranks as it has GPUs a
/// node, estimated for others; without that a copy goes at intra_node's bandwidth (estimated).
/// Throws Error for ranks on several nodes: a GPU reads the memory of those of its node alone.
CollectivePrice CopyGatherTime(const Cluster& cluster,
                               std::span<const CollectivePart> tensors,
                               int ranks);

/// The same; none of other collectives than gathers by copy engines.
std::optional<CollectivePrice> CopyGatherPrice(const CollectiveTraits& of, const Cluster& cluster);

}  // namespace dcsim
