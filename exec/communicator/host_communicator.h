#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/communicator/communicator.h"

namespace dcsim::exec {

/// Where ranks that are threads of one process meet.
class HostGroup {
 public:
  explicit HostGroup(int size) : tensors_(static_cast<std::size_t>(size)) {}

  /// Shows this rank's tensor to the others and returns theirs, by rank, once all have come. They
  /// stay valid until `Leave`.
  const std::vector<at::Tensor>& Meet(int rank, const at::Tensor& tensor);
  /// Waits until every rank is done with the tensors.
  void Leave(int rank);
  /// Fails every rank that waits, now or later.
  void Abort(const std::string& reason);

  int size() const { return static_cast<int>(tensors_.size()); }

 private:
  void WaitForAll(std::unique_lock<std::mutex>& lock, int rank);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<at::Tensor> tensors_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  std::optional<std::string> failure_;
};

/// Ranks as threads: every schedule can be executed and checked without a GPU. Sums are made in
/// rank order, in float32 for narrower floats, so all ranks get the same bits.
class HostCommunicator : public Communicator {
 public:
  HostCommunicator(std::shared_ptr<HostGroup> group, int rank)
      : group_(std::move(group)),
        rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  void AllGather(const at::Tensor& shard, const at::Tensor& gathered) override;
  void ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) override;
  void ReduceScatterMean(const at::Tensor& whole, const at::Tensor& shard) override;
  void AllReduce(const at::Tensor& tensor) override;
  std::vector<at::Tensor> OpenPeers(const at::Tensor& own) override;
  void ClosePeers(std::vector<at::Tensor> peers) override;
  void Abort(const std::string& reason) override { group_->Abort(reason); }

 private:
  std::shared_ptr<HostGroup> group_;
  int rank_;
};

}  // namespace dcsim::exec
