#include "exec/calibrate/host_benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "exec/communicator/peer_gather.h"
#include "exec/device/cuda_call.h"
#include "model/base/median.h"
#include "model/base/scaled.h"

namespace dcsim::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostLaunches = 960;  // below the launch queue

// What an op takes among others, whose code drives its own out of the caches, over what it takes in
// a loop: the median elementwise op of 70 profiles on H200s takes 6.8 us, a loop 5.8 and 6.1 us on
// two machines of that kind; nine profiles 1.25 times a loop of the same minutes.
constexpr double kAmongOthers = 1.15;
// A view over an elementwise op, both among others: median of 81 profiles, of eight in ten 0.09 to
// 0.12 (a loop would say 0.04 to 0.08).
constexpr double kView = 0.105;

/// Median over rounds of the mean time of a call; rounds are short, so that no queue fills.
Duration MedianCall(const std::function<void()>& call, int calls = 100) {
  constexpr int kRounds = 15;
  std::vector<std::int64_t> means;
  for (int round = 0; round < kRounds; ++round) {
    c10::cuda::device_synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) {
      call();
    }
    means.push_back(std::chrono::nanoseconds(Clock::now() - start).count() / calls);
  }
  return Duration::FromNs(Median(std::move(means)));
}

/// A boxed call, as the interpreter makes it.
std::function<void()> Boxed(const char* name,
                            const char* overload,
                            std::vector<c10::IValue> arguments) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  return [handle, arguments = std::move(arguments)] {
    torch::jit::Stack stack(arguments.begin(), arguments.end());
    handle.callBoxed(&stack);
  };
}

Duration SegmentTime() {
  constexpr int kPairs = 10;
  constexpr std::size_t kSegment = std::size_t{64} << 20;
  std::vector<std::int64_t> times;
  for (int i = 0; i < kPairs; ++i) {
    void* memory = nullptr;
    const auto start = Clock::now();
    DCSIM_CUDA(cudaMalloc(&memory, kSegment));
    DCSIM_CUDA(cudaFree(memory));
    times.push_back(std::chrono::nanoseconds(Clock::now() - start).count() / 2);
  }
  return Duration::FromNs(Median(std::move(times)));
}

/// Behind a kernel that takes a second, launches return at once until one waits for it to end.
int LaunchQueue(const std::function<void()>& launch) {
  constexpr std::int64_t kCycles = 1'500'000'000;
  constexpr int kMost = 8192;
  constexpr auto kWaited = std::chrono::milliseconds(20);
  c10::cuda::device_synchronize();
  at::cuda::sleep(kCycles);
  int queued = 1;
  for (; queued <= kMost; ++queued) {
    const auto start = Clock::now();
    launch();
    if (Clock::now() - start > kWaited) {
      break;
    }
  }
  c10::cuda::device_synchronize();
  return queued <= kMost ? queued : 0;
}

}  // namespace

HostSample BenchmarkHost() {
  const c10::InferenceMode inference;
  const at::Tensor small =
      at::empty({64, 64}, at::TensorOptions().dtype(at::kFloat).device(at::kCUDA)).zero_();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const auto side = c10::cuda::getStreamFromPool(/*isHighPriority=*/true);
  at::cuda::CUDAEvent event(cudaEventDisableTiming);
  HostSample sample;
  sample.launch = Scaled(MedianCall(Boxed("aten::add", "Tensor", {small, small, 1})), kAmongOthers);
  sample.view = Scaled(sample.launch, kView);
  const Duration pair = MedianCall([&] {
    event.record(stream);
    event.block(side);
  });
  sample.event = Duration::FromNs(pair.ns() / 2);
  sample.synchronize = MedianCall([&] { stream.synchronize(); });
  sample.segment = SegmentTime();
  sample.launch_queue = LaunchQueue(Boxed("aten::add", "Tensor", {small, small, 1}));
  return sample;
}

CollectiveHostSample BenchmarkCollectiveHost(Communicator& communicator) {
  constexpr int kGroup = 64;
  constexpr std::int64_t kElements = 4096;
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const at::Tensor shard = at::empty({kElements}, options).zero_();
  const at::Tensor whole = at::empty({kElements * communicator.size()}, options).zero_();
  auto peers = communicator.OpenPeers(shard);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
  const auto group = [&](int calls) {
    communicator.StartGroup();
    for (int i = 0; i < calls; ++i) {
      communicator.AllGather(shard, whole);
    }
    communicator.EndGroup();
  };
  CollectiveHostSample sample;
  sample.collective = MedianCall([&] { group(1); });
  const Duration all = MedianCall([&] { group(kGroup); }, kMostLaunches / kGroup);
  sample.grouped =
      Duration::FromNs(std::max<std::int64_t>(0, all.ns() - sample.collective.ns()) / (kGroup - 1));
  const PeerGather gather{peers, 0, kElements, whole};
  const Duration copies = MedianCall([&] { GatherFromPeers({&gather, 1}, communicator.rank()); });
  sample.copy = Duration::FromNs(copies.ns() / communicator.size());
  communicator.ClosePeers(std::move(peers));
  return sample;
}

}  // namespace dcsim::exec
