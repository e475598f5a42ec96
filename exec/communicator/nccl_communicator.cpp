#include "exec/communicator/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <exception>
#include <sys/prctl.h>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/device/cuda_call.h"
#include "model/base/error.h"
#include "model/base/units.h"

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

/// What a rank tells the others of a tensor that they may read: a handle of the memory that it lies
/// in, and its place there. A handle of an expandable segment names each of its pages.
struct PeerHandle {
  std::string handle;
  std::int64_t offset = 0;  // bytes
};

/// A piece of a PeerHandle, as NCCL gathers it.
struct Ticket {
  std::int64_t bytes;  // of the whole handle
  std::int64_t offset;
  std::array<char, 496> piece;
};

std::size_t TicketsOf(std::int64_t bytes) {
  return static_cast<std::size_t>(
      DivideUp(bytes, static_cast<std::int64_t>(sizeof(Ticket::piece))));
}

/// Every rank's handle, by rank.
std::vector<PeerHandle> ExchangeHandles(Communicator& communicator,
                                        const PeerHandle& own,
                                        c10::Device device) {
  std::vector<PeerHandle> all(static_cast<std::size_t>(communicator.size()));
  std::size_t rounds = 1;
  for (std::size_t round = 0; round < rounds; ++round) {
    Ticket ticket{};
    ticket.bytes = static_cast<std::int64_t>(own.handle.size());
    ticket.offset = own.offset;
    const std::size_t begin = std::min(round * sizeof(Ticket::piece), own.handle.size());
    own.handle.copy(ticket.piece.data(), sizeof(Ticket::piece), begin);
    const auto words = static_cast<std::int64_t>(sizeof(Ticket) / sizeof(std::int64_t));
    const at::Tensor mine =
        at::from_blob(&ticket, {words}, at::TensorOptions().dtype(at::kLong)).to(device);
    const at::Tensor gathered = at::empty({words * communicator.size()}, mine.options());
    communicator.AllGather(mine, gathered);
    const at::Tensor tickets = gathered.to(at::kCPU);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const auto& theirs =
          reinterpret_cast<const Ticket*>(tickets.const_data_ptr<std::int64_t>())[rank];
      const auto bytes = static_cast<std::size_t>(theirs.bytes);
      const std::size_t left = bytes - std::min(bytes, round * sizeof(Ticket::piece));
      all[rank].offset = theirs.offset;
      all[rank].handle.append(theirs.piece.data(), std::min(left, sizeof(Ticket::piece)));
      rounds = std::max(rounds, TicketsOf(theirs.bytes));
    }
  }
  return all;
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
  // While an error unwinds, other ranks may never launch what this rank's kernels wait for, which
  // ncclCommDestroy would wait for, too: the error must reach whoever ends all ranks.
  if (communicator_ != nullptr && std::uncaught_exceptions() == 0) {
    ncclCommDestroy(communicator_);
  }
}

void NcclCommunicator::AllGather(const at::Tensor& shard, const at::Tensor& gathered) {
  CheckNccl(ncclAllGather(shard.const_data_ptr(), gathered.mutable_data_ptr(), Count(shard),
                          ToNccl(shard), communicator_, c10::cuda::getCurrentCUDAStream()),
            "ncclAllGather", communicator_);
}

void NcclCommunicator::ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) {
  Scatter(whole, shard, ncclSum);
}

void NcclCommunicator::ReduceScatterMean(const at::Tensor& whole, const at::Tensor& shard) {
  Scatter(whole, shard, ncclAvg);
}

void NcclCommunicator::Scatter(const at::Tensor& whole,
                               const at::Tensor& shard,
                               ncclRedOp_t reduction) {
  CheckNccl(
      ncclReduceScatter(whole.const_data_ptr(), shard.mutable_data_ptr(), Count(shard),
                        ToNccl(shard), reduction, communicator_, c10::cuda::getCurrentCUDAStream()),
      "ncclReduceScatter", communicator_);
}

void NcclCommunicator::AllReduce(const at::Tensor& tensor) {
  CheckNccl(
      ncclAllReduce(tensor.const_data_ptr(), tensor.mutable_data_ptr(), Count(tensor),
                    ToNccl(tensor), ncclSum, communicator_, c10::cuda::getCurrentCUDAStream()),
      "ncclAllReduce", communicator_);
}

std::vector<at::Tensor> NcclCommunicator::OpenPeers(const at::Tensor& own) {
  if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments()) {
    // Their pages are file descriptors, which peers take out of this process.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
  }
  auto share =
      c10::cuda::CUDACachingAllocator::shareIpcHandle(const_cast<void*>(own.const_data_ptr()));
  const auto handles =
      ExchangeHandles(*this, {std::move(share.handle), share.offset}, own.device());
  std::vector<at::Tensor> peers;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) {
      peers.push_back(own);
      continue;
    }
    const PeerHandle& theirs = handles[static_cast<std::size_t>(rank)];
    auto memory = c10::cuda::CUDACachingAllocator::getIpcDevPtr(theirs.handle);
    peers.push_back(at::from_blob(
        static_cast<char*>(memory.get()) + theirs.offset, own.sizes(),
        [memory](void*) mutable { memory.reset(); }, own.options(), own.device()));
  }
  return peers;
}

void NcclCommunicator::ClosePeers(std::vector<at::Tensor> peers) {
  if (peers.empty()) {
    return;
  }
  const auto options = peers.front().options().dtype(at::kFloat);
  c10::cuda::device_synchronize();
  peers.clear();
  AllReduce(at::zeros({1}, options));
  c10::cuda::device_synchronize();
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
