#pragma once

#include "exec/communicator/communicator.h"

namespace dcsim::exec {

/// Another communicator whose collectives are left out: everything but communication runs, on
/// whatever the buffers hold. For profiles of compute alone.
class SilentCommunicator : public Communicator {
 public:
  explicit SilentCommunicator(Communicator& real) : real_(real) {}

  int rank() const override { return real_.rank(); }
  int size() const override { return real_.size(); }
  void AllGather(const at::Tensor&, const at::Tensor&) override {}
  void ReduceScatter(const at::Tensor&, const at::Tensor&) override {}
  void ReduceScatterMean(const at::Tensor&, const at::Tensor&) override {}
  void AllReduce(const at::Tensor&) override {}
  /// None: gathers by copies find no peers and copy nothing.
  std::vector<at::Tensor> OpenPeers(const at::Tensor&) override { return {}; }
  void ClosePeers(std::vector<at::Tensor>) override {}
  void Abort(const std::string& reason) override { real_.Abort(reason); }

 private:
  Communicator& real_;
};

}  // namespace dcsim::exec
