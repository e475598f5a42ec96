#pragma once

#include <optional>

#include "model/cost/cluster.h"
#include "model/cost/estimate.h"

namespace dcsim {

/// Whether a table was measured with its ranks on as many nodes as they lie on here.
bool TableApplies(const Cluster& cluster, const CollectiveTable& table);

/// Powers of two between a payload and the nearest one of a table.
double OctavesToTable(const CollectiveTable& table, Bytes payload);

/// What the tables of this kind and number of ranks say of a group of so many calls
/// (CollectiveTime), or nothing where none applies.
std::optional<Estimate> FindTableTime(
    const Cluster& cluster, CollectiveKind kind, Bytes payload, int ranks, double calls);

}  // namespace dcsim
