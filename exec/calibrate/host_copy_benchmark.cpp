#include "exec/calibrate/host_copy_benchmark.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/joint_spans.h"
#include "exec/device/event_time.h"
#include "model/base/median.h"

namespace dcsim::exec {
namespace {

constexpr std::int64_t kBytes = std::int64_t{64} << 20;

/// One direction: a stream, where from, where to, and what its copies took.
struct Direction {
  c10::cuda::CUDAStream stream;
  at::Tensor from;
  at::Tensor to;
  std::vector<at::cuda::CUDAEvent> events;

  static Direction Between(const at::Tensor& from, const at::Tensor& to) {
    return {c10::cuda::getStreamFromPool(), from, to, {}};
  }

  void Copy(int times) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    events.clear();
    for (int i = 0; i <= times; ++i) {
      events.emplace_back(cudaEventDefault).record(stream);
      if (i < times) {
        to.copy_(from, /*non_blocking=*/true);
      }
    }
  }
  /// Of the copies in the middle, beside which the other direction is busy for certain.
  std::int64_t MedianNs() const {
    std::vector<std::int64_t> times;
    for (std::size_t i = events.size() / 5; i < events.size() / 2; ++i) {
      times.push_back(TimeBetween(events[i], events[i + 1]).ns());
    }
    return Median(std::move(times));
  }
};

at::Tensor PinnedBytes() {
  return at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true)).fill_(1);
}

at::Tensor GpuBytes() {
  return at::ones({kBytes}, at::TensorOptions().dtype(at::kByte).device(at::kCUDA));
}

/// Of the slowest rank.
BytesPerSecond SlowestRate(Rendezvous& rendezvous, const std::string& key, const Direction& own) {
  std::int64_t longest = 1;
  for (const auto& rank : ExchangeNumbers(rendezvous, key, {own.MedianNs()})) {
    longest = std::max(longest, rank.front());
  }
  return BytesPerSecond(
      std::llround(static_cast<double>(kBytes) / static_cast<double>(longest) * 1e9));
}

}  // namespace

HostCopySample BenchmarkHostCopies(Rendezvous& rendezvous) {
  constexpr int kCopies = 50;
  const c10::InferenceMode inference;
  Direction out = Direction::Between(GpuBytes(), PinnedBytes());
  Direction back = Direction::Between(PinnedBytes(), GpuBytes());
  c10::cuda::device_synchronize();
  const auto start = [&rendezvous](const std::string& key) {
    c10::cuda::device_synchronize();
    rendezvous.Exchange(key, "");
  };
  HostCopySample sample;
  start("host copies out");
  out.Copy(kCopies);
  c10::cuda::device_synchronize();
  sample.offload = SlowestRate(rendezvous, "host rate out", out);
  start("host copies back");
  back.Copy(kCopies);
  c10::cuda::device_synchronize();
  sample.reload = SlowestRate(rendezvous, "host rate back", back);
  start("host copies both ways");
  out.Copy(kCopies);
  back.Copy(kCopies);
  c10::cuda::device_synchronize();
  sample.offload_beside_reload = SlowestRate(rendezvous, "host rate out, both ways", out);
  sample.reload_beside_offload = SlowestRate(rendezvous, "host rate back, both ways", back);
  return sample;
}

}  // namespace dcsim::exec
