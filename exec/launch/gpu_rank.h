#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/communicator/communicator.h"
#include "exec/launch/rank_environment.h"
#include "exec/launch/rendezvous.h"

namespace dcsim::exec {

/// Makes the GPU of this rank the process's current one and returns it. Throws SystemError naming
/// the rank when the machine has fewer GPUs.
c10::Device SelectGpu(const RankIdentity& identity);

/// NCCL communicators over all ranks of the job, joined in the order in which they are returned.
/// Every rank calls it with the same count.
std::vector<std::unique_ptr<Communicator>> JoinCommunicators(Rendezvous& rendezvous,
                                                             const RankIdentity& identity,
                                                             int count);

}  // namespace dcsim::exec
