#pragma once

#include <cstdint>
#include <vector>

#include "model/passes/lower_state.h"

namespace dcsim {

// What gathers and reductions of FSDP2's groups have in common.

/// Bytes of an element of the shards, and of whole parameters and their gradients.
std::int64_t ShardElementBytes(const LowerState& state);
std::int64_t WholeElementBytes(const LowerState& state, ParamId param);

/// Elements of one rank's shard of each, and of all.
std::vector<std::int64_t> ShardSizes(const LowerState& state, const std::vector<ParamId>& params);
std::int64_t ShardElementsOf(const LowerState& state, const std::vector<ParamId>& params);

/// A buffer of a stream's pool, not allocated yet; of one parameter, or of a group.
BufferId AddPoolBuffer(LowerState& state,
                       Bytes bytes,
                       BufferClass buffer_class,
                       StreamRole pool,
                       ParamId subject = ParamId::None());

/// One collective over a group, its parameters one behind the other; its number.
std::uint32_t AddGroupCollective(LowerState& state,
                                 CollectiveKind kind,
                                 DType dtype,
                                 const std::vector<ParamId>& params);

}  // namespace dcsim
