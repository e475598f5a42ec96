#pragma once

#include <cstdint>
#include <vector>

#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// By how much parameters begin behind multiples of 16 bytes: ZeRO-1 and 2 keep them side by side
/// in one tensor a dtype, so that one of odd size (a bias of 4 elements) shifts all behind it.
/// ZeRO-3 gathers each into memory of its own.
class ParamShifts {
 public:
  /// Nothing is shifted in stage 3. The graph must outlive this.
  ParamShifts(const Graph& graph, const ScheduleOptions& options, int ranks);

  /// Bytes by which a tensor begins behind a multiple of 16; 0 of what is no parameter.
  std::int64_t Of(ValueId value) const;

  /// The largest power of two, 16 at most, that tells where all tensors of an op begin, in bytes.
  std::int64_t AlignmentOf(OpId id) const;

 private:
  const Graph& graph_;
  std::vector<std::int64_t> begins_;  // by storage: elements in front of a parameter, else 0
};

/// Of each parameter, whether a rank's shard of it begins at no multiple of 16 bytes in the flat
/// weights (ZeRO-3), behind one of odd size: gathers read it more slowly. None in other stages.
std::vector<bool> ShiftedShards(const Graph& graph, const ScheduleOptions& options, int ranks);

}  // namespace dcsim
