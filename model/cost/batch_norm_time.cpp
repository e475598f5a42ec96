#include "model/cost/batch_norm_time.h"

#include <algorithm>

#include "model/base/units.h"
#include "model/cost/element_access.h"
#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kMostThreads = 512;  // of a block
constexpr std::int64_t kBlocksAtOnce = 4;   // a multiprocessor

struct Extents {
  std::int64_t images = 1;
  std::int64_t channels = 1;
  std::int64_t places = 1;
};

Extents ExtentsOf(const Value& input) {
  Extents of{.images = input.shape.empty() ? 1 : std::max<std::int64_t>(1, input.shape[0])};
  of.channels = input.shape.size() > 1 ? std::max<std::int64_t>(1, input.shape[1]) : 1;
  of.places = input.numel() / (of.images * of.channels);
  return of;
}

/// Threads that share a row of so many elements.
std::int64_t ThreadsFor(std::int64_t elements) {
  constexpr std::int64_t kFewest = 32;
  std::int64_t threads = kFewest;
  while (threads < std::min(elements, kMostThreads)) {
    threads *= 2;
  }
  return threads;
}

/// How much of what was written last, or read, the L2 cache (50 MB) still holds.
double CachedShare(Bytes bytes) {
  constexpr double kAll = 6e6;    // bytes of which it holds all
  constexpr double kNone = 40e6;  // … and none
  return std::clamp((kNone - static_cast<double>(bytes.count())) / (kNone - kAll), 0.0, 1.0);
}

/// A thread block for each channel, in waves of four a multiprocessor.
double ChannelsSeconds(const Extents& of,
                       Bytes bytes,
                       const BatchNormRates& rates,
                       const GpuSpec& gpu) {
  const std::int64_t threads = ThreadsFor(of.places);
  const std::int64_t rounds =
      DivideUp(of.images, kMostThreads / threads) * DivideUp(of.places, threads);
  const double cached = CachedShare(bytes);
  const double answer =
      rates.round.seconds() * (1 - cached) + rates.cached_round.seconds() * cached;
  const auto wave = [&](std::int64_t neighbours) {
    const double busy = static_cast<double>(neighbours) * rates.busy_round.seconds();
    return rates.block.seconds() + static_cast<double>(rounds) * std::max(answer, busy);
  };
  const std::int64_t at_once = kBlocksAtOnce * gpu.multiprocessors;
  const std::int64_t whole = of.channels / at_once;
  const std::int64_t rest = of.channels % at_once;
  return static_cast<double>(whole) * wave(kBlocksAtOnce) +
         (rest > 0 ? wave(DivideUp(rest, gpu.multiprocessors)) : 0);
}

/// Writes the normalized elements.
double WritingSeconds(const Extents& of, const BatchNormWriting& rates) {
  constexpr std::int64_t kFewThreads = 64;
  constexpr std::int64_t kMostBlocks = 262'144;
  const std::int64_t threads =
      std::max(ThreadsFor(of.places / 4), std::min(ThreadsFor(of.places), kFewThreads));
  const std::int64_t images = std::max<std::int64_t>(1, kFewThreads / threads);  // of a block
  const std::int64_t blocks =
      of.channels *
      std::max<std::int64_t>(1, std::min(kMostBlocks / of.channels, DivideUp(of.images, images)));
  const std::int64_t elements = of.images * of.channels * DivideUp(of.places, threads) * threads;
  return std::max(static_cast<double>(elements) / rates.elements_per_second,
                  static_cast<double>(blocks) / rates.blocks_per_second);
}

/// Rows, or images with channels last.
bool HasChannelsLast(const Value& value) {
  constexpr std::size_t kImages = 4;  // dimensions
  return value.shape.size() >= 2 && value.strides[1] == 1 &&
         (value.is_contiguous() || (value.shape.size() >= kImages && IsDenseChannelsLast(value)));
}

}  // namespace

std::optional<double> BatchNormSeconds(const KernelTraits& kernel, const GpuSpec& gpu) {
  if (kernel.family == KernelFamily::kBatchNormInference) {
    return TransferSeconds(kernel.bytes, gpu, gpu.kernels->plain);
  }
  if (kernel.family != KernelFamily::kBatchNorm) {
    return std::nullopt;
  }
  const bool backward = kernel.backward;
  const BatchNormRates& rates =
      backward ? gpu.kernels->batch_norm_backward : gpu.kernels->batch_norm;
  const Value& first = *kernel.inputs.front();  // a backward's gradient
  const Value& input = *kernel.inputs[backward && kernel.inputs.size() > 1 ? 1 : 0];
  const auto at = [&](double elements_per_second) {
    return rates.block.seconds() + static_cast<double>(input.numel()) / elements_per_second;
  };
  if (HasChannelsLast(input)) {
    return at(HasChannelsLast(first) ? rates.elements_per_second : rates.apart_per_second);
  }
  if (!input.is_contiguous()) {
    return at(rates.apart_per_second);
  }
  const Extents of = ExtentsOf(input);
  return MakeContiguousSeconds(first, gpu) + ChannelsSeconds(of, input.bytes(), rates, gpu) +
         (backward ? 0 : WritingSeconds(of, gpu.kernels->batch_norm_writing));
}

}  // namespace dcsim
