#include "exec/launch/gpu_rank.h"

#include <algorithm>

#include <c10/cuda/CUDAFunctions.h>

#include "exec/communicator/nccl_communicator.h"
#include "exec/device/machine.h"
#include "model/base/error.h"

namespace dcsim::exec {

c10::Device SelectGpu(const RankIdentity& identity) {
  const int found = GpuCount();
  if (found <= identity.local_rank) {
    throw SystemError("rank " + std::to_string(identity.rank) + " needs GPU " +
                      std::to_string(identity.local_rank) + ", this machine has " +
                      std::to_string(found));
  }
  const auto index = static_cast<c10::DeviceIndex>(identity.local_rank);
  c10::cuda::set_device(index);
  return {c10::kCUDA, index};
}

std::vector<std::unique_ptr<Communicator>> JoinCommunicators(Rendezvous& rendezvous,
                                                             const RankIdentity& identity,
                                                             int count) {
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int i = 0; i < count; ++i) {
    const std::string key = "nccl/" + std::to_string(i);
    if (identity.rank == 0) {
      const ncclUniqueId id = NcclCommunicator::MakeId();
      rendezvous.Set(key, std::string(id.internal, sizeof(id.internal)));
    }
    const std::string shared = rendezvous.Get(key);
    ncclUniqueId id;
    std::copy(shared.begin(), shared.end(), id.internal);
    communicators.push_back(std::make_unique<NcclCommunicator>(id, identity.rank, identity.size));
  }
  return communicators;
}

}  // namespace dcsim::exec
