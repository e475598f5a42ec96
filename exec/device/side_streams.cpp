#include "exec/device/side_streams.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include "exec/device/cuda_call.h"
#include "exec/device/driver_memory.h"
#include "exec/device/event_time.h"

namespace dcsim::exec {
namespace {

using Clock = std::chrono::steady_clock;
using Stream = c10::cuda::CUDAStream;

constexpr std::int64_t kCyclesAMs = 2'000'000;
constexpr std::int64_t kAheadMs = 5;  // that the GPU sleeps while the host launches
constexpr int kKernels = 120;
constexpr int kRounds = 3;
constexpr std::size_t kCandidates = 16;
// That a kernel of the chain fills: so few that they lie beside a rank's losses where the device
// has no memory left.
constexpr std::int64_t kFilled = 64;

void LaunchShortest() {
  at::cuda::sleep(1);
}

/// Puts a kernel on each stream that waits for the default stream's position.
void LetWait(std::span<const Stream> streams, at::cuda::CUDAEvent& event) {
  event.record(c10::cuda::getDefaultCUDAStream());
  for (const Stream& stream : streams) {
    event.block(stream);
    const c10::cuda::CUDAStreamGuard guard(stream);
    LaunchShortest();
  }
}

/// Time of a chain of short kernels on the default stream, start to start, beside streams that wait
/// for its end; none where the host was too slow to have them wait all along.
std::optional<Duration> ChainTime(std::span<const Stream> waiting, std::int64_t ahead_ms) {
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getDefaultCUDAStream());
  at::cuda::CUDAEvent begin(cudaEventDefault);
  at::cuda::CUDAEvent end(cudaEventDefault);
  at::cuda::CUDAEvent passed(cudaEventDisableTiming);
  const at::Tensor filled =
      DriverFloats(kFilled, {c10::kCUDA, c10::cuda::current_device()}).fill_(1);
  c10::cuda::device_synchronize();
  at::cuda::sleep(ahead_ms * kCyclesAMs);
  begin.record();
  for (int i = 0; i < kKernels; ++i) {
    filled.fill_(1);
  }
  end.record();
  LetWait(waiting, passed);
  const bool ahead = !begin.query();
  c10::cuda::device_synchronize();
  if (!ahead) {
    return std::nullopt;
  }
  return Duration::FromNs(TimeBetween(begin, end).ns() / kKernels);
}

/// The shortest of some rounds; a host that is too slow gets more time.
Duration LeastChainTime(std::span<const Stream> waiting) {
  constexpr std::int64_t kMostAheadMs = 160;
  std::optional<Duration> least;
  std::int64_t ahead_ms = kAheadMs;
  for (int round = 0; round < kRounds || (!least && ahead_ms <= kMostAheadMs); ++round) {
    if (const auto time = ChainTime(waiting, ahead_ms)) {
      least = std::min(*time, least.value_or(*time));
    } else {
      ahead_ms *= 2;
    }
  }
  return least.value_or(Duration());
}

/// Whether a kernel on the stream waits for what others wait for: streams may share a channel.
bool SharesChannel(const Stream& stream, std::span<const Stream> others) {
  constexpr auto kPatience = std::chrono::milliseconds(2);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getDefaultCUDAStream());
  at::cuda::CUDAEvent passed(cudaEventDisableTiming);
  at::cuda::CUDAEvent done(cudaEventDisableTiming);
  c10::cuda::device_synchronize();
  at::cuda::sleep(kAheadMs * kCyclesAMs);
  LetWait(others, passed);
  {
    const c10::cuda::CUDAStreamGuard own(stream);
    LaunchShortest();
    done.record(stream);
  }
  const auto start = Clock::now();
  while (!done.query() && Clock::now() - start < kPatience) {
  }
  const bool shares = !done.query();
  c10::cuda::device_synchronize();
  return shares;
}

/// A few bytes on either side, which the caching allocator knows nothing of.
class CopyBuffers {
 public:
  CopyBuffers() {
    DCSIM_CUDA(cudaMalloc(&device_, 2 * kBytes));
    DCSIM_CUDA(cudaMallocHost(&host_, kBytes));
  }
  ~CopyBuffers() {
    static_cast<void>(cudaFreeHost(host_));
    static_cast<void>(cudaFree(device_));
  }
  CopyBuffers(const CopyBuffers&) = delete;
  CopyBuffers& operator=(const CopyBuffers&) = delete;

  /// Copies of each kind.
  void Copy(const Stream& stream) const {
    void* const second = static_cast<char*>(device_) + kBytes;
    DCSIM_CUDA(cudaMemcpyAsync(device_, host_, kBytes, cudaMemcpyHostToDevice, stream));
    DCSIM_CUDA(cudaMemcpyAsync(second, device_, kBytes, cudaMemcpyDeviceToDevice, stream));
    DCSIM_CUDA(cudaMemcpyAsync(host_, second, kBytes, cudaMemcpyDeviceToHost, stream));
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  void* device_ = nullptr;
  void* host_ = nullptr;
};

std::vector<Stream> NextOfPool(c10::Device device, std::size_t count) {
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < count; ++i) {
    streams.push_back(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index()));
  }
  return streams;
}

/// Channels are given to streams at their first use, for kernels and for copies, and which of them
/// delay others changes with it. So all that may be chosen are used before any is.
std::vector<Stream> UsedCandidates(c10::Device device) {
  const CopyBuffers buffers;
  buffers.Copy(c10::cuda::getDefaultCUDAStream(device.index()));
  std::vector<Stream> candidates = NextOfPool(device, kCandidates);
  for (const Stream& candidate : candidates) {
    const c10::cuda::CUDAStreamGuard guard(candidate);
    LaunchShortest();
    buffers.Copy(candidate);
  }
  c10::cuda::device_synchronize();
  return candidates;
}

}  // namespace

std::vector<Duration> DelaysBy(std::span<const Stream> streams) {
  const Duration alone = LeastChainTime({});
  std::vector<Duration> delays;
  for (const Stream& stream : streams) {
    delays.push_back(std::max(Duration(), LeastChainTime({&stream, 1}) - alone));
  }
  return delays;
}

std::vector<Stream> ChooseSideStreams(c10::Device device, SideStreams which, std::size_t count) {
  if (which == SideStreams::kAny) {
    return NextOfPool(device, count);
  }
  const std::vector<Stream> candidates = UsedCandidates(device);
  const Duration alone = LeastChainTime({});
  std::vector<Stream> chosen;
  std::vector<Stream> left;
  for (const Stream& candidate : candidates) {
    if (chosen.size() == count) {
      break;
    }
    chosen.push_back(candidate);
    const std::span<const Stream> before(chosen.data(), chosen.size() - 1);
    if (LeastChainTime(chosen) - alone > kQuietDelay || SharesChannel(candidate, before)) {
      left.push_back(candidate);
      chosen.pop_back();
    }
  }
  for (std::size_t i = 0; chosen.size() < count; ++i) {
    chosen.push_back(left[i]);
  }
  return chosen;
}

}  // namespace dcsim::exec
