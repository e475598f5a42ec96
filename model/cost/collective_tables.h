#pragma once

#include <optional>

#include "model/cost/collective_traits.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// Whether a table was measured with its ranks on as many nodes as they lie on here.
bool TableApplies(const Cluster& cluster, const CollectiveTable& table);

/// Powers of two between a payload and the nearest one of a table.
double OctavesToTable(const CollectiveTable& table, Bytes payload);

/// What the tables of this kind and number of ranks say of a group of so many calls; none where no
/// table applies.
std::optional<CollectivePrice> TablePrice(const CollectiveTraits& of, const Cluster& cluster);

/// Without a table of this number of ranks n, NCCL's tables of the two numbers a and b nearest to
/// it on a node (estimated): T(n) = start(n) + (n-1)/n * whole(n), where start, the time of the
/// smallest payload if that is at most 64 KiB (else RingTime's latency if that is less), is a
/// straight line over the ranks, and whole one over 1/n^2. With tables of one number, `whole` stays
/// and RingTime's hops change start. None without any, or over several nodes. Source: this law
/// gives the tables of 8 H200s that were measured on another day from those of 2 and 4 to 2.5 %
/// above 64 MiB (collective_cost_test).
std::optional<CollectivePrice> OtherRanksPrice(const CollectiveTraits& of, const Cluster& cluster);

}  // namespace dcsim
