#include "exec/calibrate/copy_engine_benchmark.h"

#include <algorithm>
#include <string>
#include <vector>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/joint_spans.h"
#include "exec/communicator/peer_gather.h"
#include "exec/device/event_time.h"
#include "model/base/median.h"

namespace dcsim::exec {
namespace {

constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kSmall = 256;  // elements of a rank's shard
constexpr int kTensors = 64;
constexpr Bytes kLarge = Bytes::MiB(128);
constexpr int kRepeats = 20;

/// Elements of bfloat16.
struct Buffers {
  at::Tensor whole;
  at::Tensor shard;
  std::vector<at::Tensor> peers;  // every rank's shard
  at::Tensor scratch;             // to keep the stream busy
};

/// Times of gathers that follow each other on this rank's stream, in ns. The stream is kept busy
/// until the host has issued all of them, so that their times are the copy engines' own.
std::vector<std::int64_t> TimesOf(const Buffers& buffers,
                                  int rank,
                                  int tensors,
                                  std::int64_t shard) {
  constexpr int kFills = 24;  // of 1 GiB: 8 ms
  const auto ranks = static_cast<std::int64_t>(buffers.peers.size());
  std::vector<PeerGather> gathers;
  for (int i = 0; i < tensors; ++i) {
    const at::Tensor whole = buffers.whole.narrow(0, i * shard * ranks, shard * ranks);
    gathers.push_back({buffers.peers, i * shard, shard, whole});
  }
  for (int i = 0; i < kFills; ++i) {
    buffers.scratch.zero_();
  }
  std::vector<at::cuda::CUDAEvent> events;
  for (int i = 0; i < kRepeats; ++i) {
    events.emplace_back(cudaEventDefault).record();
    GatherFromPeers(gathers, rank);
    events.emplace_back(cudaEventDefault).record();
  }
  c10::cuda::device_synchronize();
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i + 1 < events.size(); i += 2) {
    times.push_back(TimeBetween(events[i], events[i + 1]).ns());
  }
  return times;
}

/// All ranks' times of the case; they begin together.
std::vector<std::int64_t> TimesOfAll(
    Rendezvous& rendezvous, const Buffers& buffers, int rank, int tensors, std::int64_t shard) {
  const std::string key = "copy engines/" + std::to_string(tensors) + " x " + std::to_string(shard);
  rendezvous.Exchange(key + "/ready", "");
  std::vector<std::int64_t> all;
  for (const auto& times :
       ExchangeNumbers(rendezvous, key, TimesOf(buffers, rank, tensors, shard))) {
    all.insert(all.end(), times.begin(), times.end());
  }
  return all;
}

}  // namespace

CopyEngineSample BenchmarkCopyEngines(Communicator& communicator, Rendezvous& rendezvous) {
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const std::int64_t ranks = communicator.size();
  const std::int64_t large = kLarge.count() / kElementBytes / ranks;
  Buffers buffers{at::empty({large * ranks}, options).zero_(),
                  at::empty({large}, options).zero_(),
                  {},
                  at::empty({Bytes::GiB(1).count() / kElementBytes}, options)};
  buffers.peers = communicator.OpenPeers(buffers.shard);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
  c10::cuda::device_synchronize();
  const auto run = [&](int tensors, std::int64_t shard) {
    return TimesOfAll(rendezvous, buffers, communicator.rank(), tensors, shard);
  };
  CopyEngineSample sample;
  sample.tensors = kTensors;
  sample.one = Duration::FromNs(Median(run(1, kSmall)));
  sample.many = Duration::FromNs(Median(run(kTensors, kSmall)));
  sample.payload = Bytes(large * ranks * kElementBytes);
  const auto times = run(1, large);
  sample.least = Duration::FromNs(*std::min_element(times.begin(), times.end()));
  sample.median = Duration::FromNs(Median(times));
  communicator.ClosePeers(std::move(buffers.peers));
  return sample;
}

}  // namespace dcsim::exec
