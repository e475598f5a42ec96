#pragma once

#include "exec/communicator/communicator.h"
#include "model/ir/schedule.h"

namespace dcsim::exec {

/// A collective of a kind that is chosen at run time. `whole` [size * n] and `shard` [n] as
/// Communicator's calls take them; an all-reduce is of `whole`.
void RunCollective(Communicator& communicator,
                   CollectiveKind kind,
                   const at::Tensor& whole,
                   const at::Tensor& shard);

}  // namespace dcsim::exec
