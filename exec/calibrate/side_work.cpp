#include "exec/calibrate/side_work.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "exec/communicator/peer_gather.h"
#include "exec/communicator/run_collective.h"
#include "model/base/text.h"

namespace dcsim::exec {
namespace {

constexpr Bytes kHostCopy = Bytes::MiB(16);

at::Tensor Part(const at::Tensor& tensor, Bytes payload) {
  return tensor.narrow(0, 0, tensor.numel() * payload.count() / SideWorks::kLargest.count());
}

}  // namespace

SideWorks::SideWorks(const std::vector<std::unique_ptr<Communicator>>& communicators)
    : communicators_(communicators) {
  Communicator& communicator = *communicators_.front();
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const std::int64_t elements = kLargest.count() / 2;
  const std::int64_t own = elements / communicator.size();
  whole_ = at::zeros({elements}, options);
  shard_ = at::zeros({own}, options);
  other_whole_ = at::zeros({elements}, options);
  other_shard_ = at::zeros({own}, options);
  on_host_ = at::empty({kHostCopy.count() / 2},
                       at::TensorOptions().dtype(at::kBFloat16).pinned_memory(true))
                 .zero_();
  peers_ = communicator.OpenPeers(shard_);
  others_ = peers_;
  const auto rank = static_cast<std::size_t>(communicator.rank());
  others_[rank] = peers_[(rank + 1) % peers_.size()];
}

SideWorks::~SideWorks() {
  others_.clear();
  communicators_.front()->ClosePeers(std::move(peers_));
}

SideWork SideWorks::Collective(CollectiveKind kind, Bytes payload) const {
  const auto run = [this, kind, whole = Part(whole_, payload), shard = Part(shard_, payload)] {
    RunCollective(*communicators_.front(), kind, whole, shard);
  };
  return {std::string(CollectiveKindName(kind)) + " " + PrintBytes(payload), DeviceUse::kCollective,
          run, payload};
}

std::vector<SideWork> SideWorks::Collectives() const {
  std::vector<SideWork> works;
  for (const Bytes payload : {Bytes::MiB(16), kLargest}) {
    for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
      works.push_back(Collective(static_cast<CollectiveKind>(kind), payload));
    }
  }
  return works;
}

SideWork SideWorks::OtherReduceScatter() const {
  return {"reduce_scatter " + PrintBytes(kLargest), DeviceUse::kCollective,
          [this] { communicators_.back()->ReduceScatter(other_whole_, other_shard_); }, kLargest};
}

SideWork SideWorks::ReadPeers() const {
  const auto run = [this] {
    const PeerGather gather{others_, 0, shard_.numel(), whole_};
    GatherFromPeers({&gather, 1}, communicators_.front()->rank());
  };
  return {"read of " + PrintBytes(kLargest) + " from peers", DeviceUse::kCopyEngine, run, kLargest};
}

std::vector<SideWork> SideWorks::Copies() const {
  std::vector<SideWork> works;
  for (const Bytes size : {Bytes::MiB(32), kLargest}) {
    const at::Tensor from = Part(whole_, size);
    const at::Tensor to = Part(other_whole_, size);
    works.push_back({"copy " + PrintBytes(size), DeviceUse::kSideStreaming,
                     [from, to] { to.copy_(from, /*non_blocking=*/true); }, size});
    works.push_back(
        {"divide " + PrintBytes(size), DeviceUse::kSideStreaming, [to] { to.div_(2); }, size});
  }
  return works;
}

std::vector<SideWork> SideWorks::ManyCopies() const {
  constexpr std::int64_t kTensors = 32;
  const std::vector<at::Tensor> from = whole_.chunk(kTensors);
  const std::vector<at::Tensor> to = other_whole_.chunk(kTensors);
  const std::string each =
      std::to_string(kTensors) + " x " + PrintBytes(Bytes(kLargest.count() / kTensors));
  const auto copy = [from, to] {
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].copy_(from[i], /*non_blocking=*/true);
    }
  };
  const auto divide = [to] {
    for (const at::Tensor& tensor : to) {
      tensor.div_(2);
    }
  };
  return {{"copy " + each, DeviceUse::kSideStreaming, copy, kLargest, kTensors},
          {"divide " + each, DeviceUse::kSideStreaming, divide, kLargest, kTensors}};
}

std::vector<SideWork> SideWorks::HostCopies() const {
  const at::Tensor on_gpu = Part(other_whole_, kHostCopy);
  const std::string what = "copy " + PrintBytes(kHostCopy);
  const auto work = [&](const std::string& name, HostCopy way, const at::Tensor& from,
                        const at::Tensor& to) {
    return SideWork{name,
                    DeviceUse::kCopyEngine,
                    [from, to] { to.copy_(from, /*non_blocking=*/true); },
                    kHostCopy,
                    1,
                    way};
  };
  return {work(what + " to the host", HostCopy::kOut, on_gpu, on_host_),
          work(what + " from the host", HostCopy::kBack, on_host_, on_gpu)};
}

}  // namespace dcsim::exec
