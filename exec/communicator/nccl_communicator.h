#pragma once

#include <functional>
#include <string>

#include <nccl.h>

#include "exec/communicator/communicator.h"

namespace dcsim::exec {

/// One NCCL communicator of this process's GPU; calls go to the current CUDA stream.
class NcclCommunicator : public Communicator {
 public:
  /// A new id for one communicator, made by one rank and given to all.
  static ncclUniqueId MakeId();

  /// Joins `size` ranks; returns when all have joined.
  NcclCommunicator(const ncclUniqueId& id, int rank, int size);
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void AllGather(const at::Tensor& shard, const at::Tensor& gathered) override;
  void ReduceScatter(const at::Tensor& whole, const at::Tensor& shard) override;
  void ReduceScatterMean(const at::Tensor& whole, const at::Tensor& shard) override;
  void AllReduce(const at::Tensor& tensor) override;
  std::vector<at::Tensor> OpenPeers(const at::Tensor& own) override;
  void ClosePeers(std::vector<at::Tensor> peers) override;
  void StartGroup() override;
  void EndGroup() override;
  void Abort(const std::string& reason) override;

 private:
  void Scatter(const at::Tensor& whole, const at::Tensor& shard, ncclRedOp_t reduction);

  ncclComm_t communicator_ = nullptr;
  int rank_;
  int size_;
};

}  // namespace dcsim::exec
