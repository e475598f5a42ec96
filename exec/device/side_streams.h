#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <c10/core/Device.h>
#include <c10/cuda/CUDAStream.h>

#include "model/base/units.h"

namespace dcsim::exec {

/// Which streams a rank puts beside the default one, on which it computes.
enum class SideStreams : std::uint8_t {
  kQuiet,  // those that delay no kernel of the default stream while they wait for events
  kAny,    // the next ones of PyTorch's pool, as DeepCompile takes them
};

/// Waiting streams delay kernels by 0.9 to 1.3 us each, or by no more than 0.15.
constexpr Duration kQuietDelay = Duration::FromNs(400);

/// How much later each kernel of the default stream starts while one of these streams waits for an
/// event that it records, for each stream by itself: 0, or some 0.9 us (one H200, 2026-11-26;
/// docs/design/costs/side_streams.md). The kernels are short ones. Takes 20 ms and as long again
/// for each stream; the device is idle before and after, and PyTorch's allocator is not
/// asked.
std::vector<Duration> DelaysBy(std::span<const c10::cuda::CUDAStream> streams);

/// `count` high-priority streams of PyTorch's pool. Of quiet ones each is taken that delays no
/// kernel together with those taken before and does not wait for what they wait for (streams share
/// a few hardware channels); where these are too few others follow in the pool's order. Takes 0.5
/// s.
std::vector<c10::cuda::CUDAStream> ChooseSideStreams(c10::Device device,
                                                     SideStreams which,
                                                     std::size_t count);

}  // namespace dcsim::exec
