#include "exec/calibrate/host_benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zero.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include "exec/communicator/peer_gather.h"
#include "exec/device/cuda_call.h"
#include "exec/device/event_time.h"
#include "model/base/median.h"
#include "model/base/scaled.h"

namespace dcsim::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostLaunches = 960;                // below the launch queue
constexpr std::int64_t kStepCycles = 40'000'000;  // a sleep as long as a step, 20 ms

// What an op takes among others, whose code drives its own out of the caches, over what it takes in
// a loop: the median elementwise op of 70 profiles on H200s takes 6.8 us, a loop 5.8 and 6.1 us on
// two machines of that kind; nine profiles 1.25 times a loop of the same minutes.
constexpr double kAmongOthers = 1.15;
// A view over an elementwise op, both among others: median of 81 profiles, of eight in ten 0.09 to
// 0.12 (a loop would say 0.04 to 0.08).
constexpr double kView = 0.105;

/// What a call takes, ns.
std::int64_t TimeOf(const std::function<void()>& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::nanoseconds(Clock::now() - start).count();
}

/// Median over rounds of the mean time of a call; rounds are short, so that no queue fills.
Duration MedianCall(const std::function<void()>& call, int calls = 100) {
  constexpr int kRounds = 15;
  std::vector<std::int64_t> means;
  for (int round = 0; round < kRounds; ++round) {
    c10::cuda::device_synchronize();
    const std::int64_t all = TimeOf([&] {
      for (int i = 0; i < calls; ++i) {
        call();
      }
    });
    means.push_back(all / calls);
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

/// What the GPU idles longer where the host has waited for it than where it has not, less the
/// launch, which the host makes meanwhile: it sleeps as long as a step takes, and its caches cool.
Duration WaitTime(const std::function<void()>& launch, Duration launch_time) {
  constexpr int kRounds = 9;
  const auto stream = c10::cuda::getCurrentCUDAStream();
  at::cuda::CUDAEvent slept(cudaEventDefault);
  at::cuda::CUDAEvent launched(cudaEventDefault);
  const auto idle_ns = [&](bool waits) {
    at::cuda::sleep(kStepCycles);
    slept.record(stream);
    if (waits) {
      stream.synchronize();
    }
    launch();
    launched.record(stream);
    c10::cuda::device_synchronize();
    return TimeBetween(slept, launched).ns();
  };
  std::vector<std::int64_t> longer;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t without = idle_ns(false);
    longer.push_back(idle_ns(true) - without);
  }
  return std::max(Duration(), Duration::FromNs(Median(std::move(longer))) - launch_time);
}

struct RecordedFrees {
  Duration record;
  Duration take_back;
};

/// Tensors that a side stream uses are freed while it sleeps, and taken back when it has woken.
RecordedFrees TimeRecordedFrees(const c10::cuda::CUDAStream& side,
                                const std::function<void()>& launch) {
  constexpr int kRounds = 9;
  constexpr std::size_t kTensors = 400;
  constexpr std::int64_t kBytes = 4096;
  constexpr int kLaunches = 50;  // behind the wait, until the host is at its pace again
  const auto options = at::TensorOptions().dtype(at::kByte).device(at::kCUDA);
  const auto some = [&options] {
    std::vector<at::Tensor> tensors(kTensors);
    for (at::Tensor& tensor : tensors) {
      tensor = at::empty({kBytes}, options);
    }
    return tensors;
  };
  std::vector<std::int64_t> records;
  std::vector<std::int64_t> taken;
  for (int round = 0; round < kRounds; ++round) {
    auto plain = some();
    const std::int64_t free_ns = TimeOf([&plain] { plain.clear(); });
    auto used = some();
    for (const at::Tensor& tensor : used) {
      c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), side);
    }
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      at::cuda::sleep(kStepCycles);
    }
    const std::int64_t recorded_ns = TimeOf([&used] { used.clear(); });
    c10::cuda::device_synchronize();
    for (int i = 0; i < kLaunches; ++i) {
      launch();
    }
    at::Tensor tensor;
    const std::int64_t first_ns = TimeOf([&] { tensor = at::empty({kBytes}, options); });
    at::Tensor other;
    const std::int64_t second_ns = TimeOf([&] { other = at::empty({kBytes}, options); });
    c10::cuda::device_synchronize();
    constexpr auto kCount = static_cast<std::int64_t>(kTensors);
    records.push_back(std::max<std::int64_t>(0, recorded_ns - free_ns) / kCount);
    taken.push_back(std::max<std::int64_t>(0, first_ns - second_ns) / kCount);
  }
  return {Duration::FromNs(Median(std::move(records))), Duration::FromNs(Median(std::move(taken)))};
}

Duration SegmentTime() {
  constexpr int kPairs = 10;
  constexpr std::size_t kSegment = std::size_t{64} << 20;
  std::vector<std::int64_t> times;
  for (int i = 0; i < kPairs; ++i) {
    const std::int64_t pair = TimeOf([] {
      void* memory = nullptr;
      DCSIM_CUDA(cudaMalloc(&memory, kSegment));
      DCSIM_CUDA(cudaFree(memory));
    });
    times.push_back(pair / 2);
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
    if (std::chrono::nanoseconds(TimeOf(launch)) > kWaited) {
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
  const auto add = Boxed("aten::add", "Tensor", {small, small, 1});
  const Duration launch = MedianCall(add);
  sample.launch = Scaled(launch, kAmongOthers);
  sample.view = Scaled(sample.launch, kView);
  const Duration pair = MedianCall([&] {
    event.record(stream);
    event.block(side);
  });
  sample.event = Duration::FromNs(pair.ns() / 2);
  const auto in_place = [small] { small.zero_(); };  // asks the allocator for nothing
  sample.synchronize = WaitTime(in_place, launch);
  const RecordedFrees frees = TimeRecordedFrees(side, in_place);
  sample.record = frees.record;
  sample.take_back = frees.take_back;
  sample.segment = SegmentTime();
  sample.launch_queue = LaunchQueue(add);
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
