#include "exec/communicator/host_communicator.h"

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// Sum over ranks of one part of every rank's tensor.
at::Tensor SumOverRanks(const std::vector<at::Tensor>& tensors,
                        std::int64_t begin,
                        std::int64_t count) {
  const auto dtype = tensors.front().scalar_type();
  const bool narrow = dtype == at::kBFloat16 || dtype == at::kHalf;
  at::Tensor sum =
      tensors.front().narrow(0, begin, count).to(narrow ? at::kFloat : dtype, false, true);
  for (std::size_t rank = 1; rank < tensors.size(); ++rank) {
    sum.add_(tensors[rank].narrow(0, begin, count));
  }
  return sum.to(dtype);
}

}  // namespace

void HostGroup::WaitForAll(std::unique_lock<std::mutex>& lock, int rank) {
  const std::uint64_t round = round_;
  if (++arrived_ == size()) {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return round_ != round || failure_.has_value(); });
  if (failure_) {
    throw SystemError("rank " + std::to_string(rank) + ": collective stopped: " + *failure_);
  }
}

const std::vector<at::Tensor>& HostGroup::Meet(int rank, const at::Tensor& tensor) {
  std::unique_lock<std::mutex> lock(mutex_);
  tensors_[static_cast<std::size_t>(rank)] = tensor;
  WaitForAll(lock, rank);
  return tensors_;
}

void HostGroup::Leave(int rank) {
  std::unique_lock<std::mutex> lock(mutex_);
  WaitForAll(lock, rank);
  tensors_[static_cast<std::size_t>(rank)].reset();  // or it would live until the next collective
}

void HostGroup::Abort(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failure_) {
    failure_ = reason;
  }
  changed_.notify_all();
}

void HostCommunicator::AllGather(const at::Tensor& shard, const at::Tensor& gathered) {
  const auto& shards = group_->Meet(rank_, shard);
  const std::int64_t count = shard.numel();
  for (int rank = 0; rank < size(); ++rank) {
    const at::Tensor part = gathered.narrow(0, rank * count, count);
    if (!part.is_alias_of(shards[static_cast<std::size_t>(rank)]) || rank != rank_) {
      part.copy_(shards[static_cast<std::size_t>(rank)]);
    }
  }
  group_->Leave(rank_);
}

void HostCommunicator::ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) {
  const auto& wholes = group_->Meet(rank_, whole);
  const std::int64_t count = shard.numel();
  const at::Tensor sum = SumOverRanks(wholes, rank_ * count, count);
  group_->Leave(rank_);
  shard.copy_(sum);
}

void HostCommunicator::ReduceScatterMean(const at::Tensor& whole, const at::Tensor& shard) {
  ReduceScatter(whole, shard);
  shard.div_(size());
}

void HostCommunicator::AllReduce(const at::Tensor& tensor) {
  const auto& tensors = group_->Meet(rank_, tensor);
  const at::Tensor sum = SumOverRanks(tensors, 0, tensor.numel());
  group_->Leave(rank_);
  tensor.copy_(sum);
}

std::vector<at::Tensor> HostCommunicator::OpenPeers(const at::Tensor& own) {
  std::vector<at::Tensor> peers = group_->Meet(rank_, own);
  group_->Leave(rank_);
  return peers;
}

void HostCommunicator::ClosePeers(std::vector<at::Tensor> peers) {
  peers.clear();
  group_->Meet(rank_, at::Tensor());
  group_->Leave(rank_);
}

}  // namespace dcsim::exec
