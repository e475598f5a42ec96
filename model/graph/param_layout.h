#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/graph/sharding.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Where a parameter lies in the flat tensors of its dtype, in elements.
struct ParamPlace {
  std::size_t group = 0;
  std::int64_t numel = 0;
  std::int64_t shard = 0;      // of one rank, padded
  std::int64_t weights = 0;    // start in the flat weights: whole (ZeRO-1, 2), own shard (ZeRO-3);
                               // of trainable ones, where the flat tensor is cut anywhere, too
  std::int64_t partition = 0;  // start of its own shard in the partition (cut by parameter)
  bool trainable = true;
};

/// A part of a parameter that a rank owns: elements [begin, end) of the parameter lie at
/// `partition` in the rank's partition.
struct OwnedPart {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t partition = 0;
};

/// What a rank owns of several parameters, padding of shards included.
struct OwnedShare {
  std::size_t parts = 0;  // parameters of which it owns a part
  std::int64_t elements = 0;
};

/// How the parameters of a plan are laid out in flat tensors and cut over ranks: for the schedule,
/// which declares them, and for its execution.
class ParamLayout {
 public:
  ParamLayout(const Graph& graph, const ScheduleOptions& options, int ranks);

  const ParamPlace& place(ParamId id) const { return places_[id.index()]; }
  const std::vector<FlatGroup>& groups() const { return groups_; }
  /// Elements of one rank's partition of a group.
  std::int64_t partition(std::size_t group) const { return partitions_[group]; }
  /// Elements of a group's flat weights on one rank.
  std::int64_t weights(std::size_t group) const { return weights_[group]; }
  bool by_parameter() const { return by_parameter_; }
  int stage() const { return stage_; }
  int ranks() const { return ranks_; }

  /// The part of a parameter in a rank's partition; empty (begin == end) when it owns none.
  OwnedPart owned(ParamId id, int rank) const;

  /// What a rank owns of some trainable parameters.
  OwnedShare owned(std::span<const ParamId> params, int rank) const;

  /// Of some trainable parameters of one group: the most of which a rank owns a part.
  std::size_t most_parts(std::span<const ParamId> params) const;

 private:
  int stage_;
  int ranks_;
  bool by_parameter_;
  std::vector<FlatGroup> groups_;
  std::vector<std::int64_t> partitions_;
  std::vector<std::int64_t> weights_;
  std::vector<ParamPlace> places_;
};

}  // namespace dcsim
