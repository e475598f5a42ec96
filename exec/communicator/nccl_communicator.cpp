#include "exec/communicator/nccl_communicator.h"

#include <c10/cuda/CUDAStream.h>

#include "exec/device/cuda_call.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

ncclDataType_t ToNccl(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kBFloat16:
      return ncclBfloat16;
    case at::kHalf:
      return ncclFloat16;
    case at::kFloat:
      return ncclFloat32;
    case at::kDouble:
      return ncclFloat64;
    case at::kLong:
      return ncclInt64;
    default:
      throw Error("no NCCL type for " + std::string(c10::toString(tensor.scalar_type())));
  }
}

std::size_t Count(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

}  // namespace

ncclUniqueId NcclCommunicator::MakeId() {
  ncclUniqueId id;
  CheckNccl(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
  return id;
}

NcclCommunicator::NcclCommunicator(const ncclUniqueId& id, int rank, int size)
    : rank_(rank),
      size_(size) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  CheckNccl(ncclCommInitRankConfig(&communicator_, size, id, rank, &config),
            "ncclCommInitRankConfig", nullptr);
}

NcclCommunicator::~NcclCommunicator() {
  if (communicator_ != nullptr) {
    ncclCommDestroy(communicator_);
  }
}

void NcclCommunicator::AllGather(const at::Tensor& shard, const at::Tensor& gathered) {
  CheckNccl(ncclAllGather(shard.const_data_ptr(), gathered.mutable_data_ptr(), Count(shard),
                          ToNccl(shard), communicator_, c10::cuda::getCurrentCUDAStream()),
            "ncclAllGather", communicator_);
}

void NcclCommunicator::ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) {
  CheckNccl(
      ncclReduceScatter(whole.const_data_ptr(), shard.mutable_data_ptr(), Count(shard),
                        ToNccl(shard), ncclSum, communicator_, c10::cuda::getCurrentCUDAStream()),
      "ncclReduceScatter", communicator_);
}

void NcclCommunicator::AllReduce(const at::Tensor& tensor) {
  CheckNccl(
      ncclAllReduce(tensor.const_data_ptr(), tensor.mutable_data_ptr(), Count(tensor),
                    ToNccl(tensor), ncclSum, communicator_, c10::cuda::getCurrentCUDAStream()),
      "ncclAllReduce", communicator_);
}

void NcclCommunicator::StartGroup() {
  CheckNccl(ncclGroupStart(), "ncclGroupStart", communicator_);
}

void NcclCommunicator::EndGroup() {
  CheckNccl(ncclGroupEnd(), "ncclGroupEnd", communicator_);
}

void NcclCommunicator::Abort(const std::string&) {
  if (communicator_ != nullptr) {
    ncclCommAbort(communicator_);
    communicator_ = nullptr;
  }
}

}  // namespace dcsim::exec
