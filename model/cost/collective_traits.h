#pragma once

#include <span>

#include "model/base/units.h"
#include "model/cost/estimate.h"
#include "model/ir/schedule.h"

namespace dcsim {

struct Cluster;

/// One call of a collective, whose tensor begins `offset` behind a multiple of 16 bytes.
struct CollectivePart {
  Bytes payload;
  Bytes offset = {};
  bool shifted_shard = false;  // of a gather: each rank reads its own part from no multiple of 16
                               // bytes (ShiftedShards)
};

/// What the time of a collective alone depends on, its tensors at multiples of 16 bytes.
///
///   payload   of the full tensors (nccl-tests' size), summed over the calls of a group
///   ranks     >= 1
///   calls     >= 1, of a group, as AlikeCalls counts them
///   parts     copy engines: the tensors
struct CollectiveTraits {
  CollectiveKind kind = CollectiveKind::kAllGather;
  Bytes payload;
  int ranks = 1;
  double calls = 1;
  Engine engine = Engine::kNccl;
  std::span<const CollectivePart> parts = {};
};

struct CollectivePrice {
  Estimate whole;            // from the last rank's start to the end
  Duration own_shards = {};  // WorkCost::own_shard: the last copies, within the GPU
};

}  // namespace dcsim
