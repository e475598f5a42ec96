#pragma once

#include <span>
#include <vector>

#include "model/cost/collective_traits.h"
#include "model/cost/estimate.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// How a collective's payload is split and where it lies.
struct GroupShape {
  double calls = 1;                  // >= 1, of a group, as AlikeCalls counts them
  double unaligned = 0;              // share of the payload, as UnalignedShare counts it
  double shifted_shards = 0;         // share of a gather's payload whose shards are shifted
  std::vector<Bytes> first_channel;  // of a group, as FirstChannel tells it; empty where that is
                                     // not known or has no effect
};

/// Time of one of NCCL's collectives alone, from the last rank's start to its end, launch to last
/// byte.
///
///   payload   of the full tensor (nccl-tests' size), summed over the calls of a group: one NCCL
///             group runs as one kernel
///   ranks     >= 1; one rank copies on its own GPU, and has nothing to do in an all-reduce, which
///             is in place
///   group     how the payload is split. NCCL's time for what is unaligned, beyond that of the
///             smallest payload, is `unaligned_collectives` of the cluster times as long; gathers
///             of shifted shards take longer by its `shifted_shard_gathers`
///
/// A table counts only for ranks that lie on as many nodes as it was measured on: one measured
/// within a node says nothing of groups that span several.
///
/// A measured table of the same kind, ranks and calls answers where there is one: its point
/// (measured), the straight line between two points (interpolated), below the table the line from
/// RingTime's latency at 0 bytes to the smallest point, and above it the slope of the last two
/// points (both estimated). Between tables of fewer and of more calls the straight line over the
/// logarithm of the calls (interpolated); outside them the nearest.
///
/// Tables are of calls alike. A group of more than 32 calls ends when its first channel does, which
/// holds all its short calls: each takes at least w there, where the others take their share of the
/// time beyond the smallest payload's; w is what a call more on a channel adds in the smallest
/// group of the nearest table of more than 32 calls (interpolated).
///
/// By the first of CollectiveModels that knows the call, its tensors at multiples of 16 bytes.
Estimate CollectiveTime(const Cluster& cluster,
                        CollectiveKind kind,
                        Bytes payload,
                        int ranks,
                        const GroupShape& group = {});

/// What a collective occupies of the GPU: one rank copies on its own GPU, behind other work.
DeviceUse CollectiveUse(Engine engine, int ranks);

/// WorkCost::start of NCCL's: of one rank's copy the time that its kernel starts behind what lets
/// it; those of several ranks have gaps in which ranks meet, too.
Duration CollectiveStart(const Cluster& cluster, int ranks);

/// Of all calls together.
Bytes PayloadOf(std::span<const CollectivePart> parts);

/// How many calls of one size split a group's payload as much as these do: (sum of sizes)^2 / sum
/// of squares; n for n alike, little more than 1 for a large one with small ones. Tables are
/// measured with calls of one size.
double AlikeCalls(std::span<const CollectivePart> parts);

/// Of the payload, what is in tensors that begin at no multiple of 16 bytes; of an all-gather, in
/// ranks' parts that do, and of a reduce-scatter in tensors with such a part. Source: NCCL 2.28.9
/// on two H200s, where a gather with one unaligned part of two took 1.46 times as long, with
/// two 1.93.
double UnalignedShare(CollectiveKind kind, std::span<const CollectivePart> parts, int ranks);

/// CollectiveTime of calls in one group, or of a single one: its payload is theirs together, and
/// its shape what their sizes and places make. On one rank each call is a copy of its own.
Estimate GroupTime(const Cluster& cluster,
                   CollectiveKind kind,
                   std::span<const CollectivePart> parts,
                   int ranks);

/// WorkCost::demand of a group of calls: of the thread blocks that NCCL launches at most, what it
/// takes (ChannelsTaken; all where the cluster does not say how many there are). Of one rank's
/// copies the share of GroupTime in which bytes move.
Share GroupDemand(const Cluster& cluster,
                  CollectiveKind kind,
                  std::span<const CollectivePart> parts,
                  int ranks);

}  // namespace dcsim
