#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "exec/calibrate/contention_sample.h"
#include "exec/communicator/communicator.h"
#include "model/base/units.h"
#include "model/ir/schedule.h"
#include "model/machine/contention.h"

namespace dcsim::exec {

/// Work of another stream than the one that computes.
struct SideWork {
  std::string name;
  DeviceUse use = DeviceUse::kCollective;
  std::function<void()> run;  // on the current stream
  Bytes payload{};            // of a collective or of a copy
  std::int64_t kernels = 1;   // that it launches
  HostCopy host = HostCopy::kNone;
};

/// What side streams do in training, in sizes of no particular model, on buffers of its own.
class SideWorks {
 public:
  static constexpr Bytes kLargest = Bytes::MiB(128);

  /// All ranks make and destroy theirs together, of the same communicators, one at least.
  explicit SideWorks(const std::vector<std::unique_ptr<Communicator>>& communicators);
  ~SideWorks();
  SideWorks(const SideWorks&) = delete;
  SideWorks& operator=(const SideWorks&) = delete;

  /// On the first communicator; of at most kLargest.
  SideWork Collective(CollectiveKind kind, Bytes payload) const;
  /// Each kind, of 16 MiB and kLargest.
  std::vector<SideWork> Collectives() const;
  /// Of kLargest, on the last communicator.
  SideWork OtherReduceScatter() const;
  /// Copies of kLargest from other ranks by copy engines, as a gather's without the own shard,
  /// which multiprocessors copy.
  SideWork ReadPeers() const;
  /// Copies and divisions of one tensor.
  std::vector<SideWork> Copies() const;
  /// Copies and divisions of as many tensors, as of a model's gradients: kLargest in all.
  std::vector<SideWork> ManyCopies() const;
  /// One each way.
  std::vector<SideWork> HostCopies() const;

 private:
  const std::vector<std::unique_ptr<Communicator>>& communicators_;
  at::Tensor whole_;
  at::Tensor shard_;
  at::Tensor other_whole_;
  at::Tensor other_shard_;
  at::Tensor on_host_;
  std::vector<at::Tensor> peers_;   // every rank's shard
  std::vector<at::Tensor> others_;  // of its length; the successor's for the own
};

}  // namespace dcsim::exec
