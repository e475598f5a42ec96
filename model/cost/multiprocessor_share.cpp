#include "model/cost/multiprocessor_share.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "model/base/scaled.h"

namespace dcsim {
namespace {

/// The product of the first two numbers of "128x256" or "128x256x64"; none of anything else.
std::optional<std::int64_t> TileOf(std::string_view token) {
  std::int64_t elements = 1;
  int numbers = 0;
  while (!token.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
    constexpr std::int64_t kLargest = 4096;
    if (error != std::errc() || number < 1 || number > kLargest) {
      return std::nullopt;
    }
    elements *= numbers < 2 ? number : 1;
    ++numbers;
    token.remove_prefix(static_cast<std::size_t>(end - token.data()));
    if (!token.empty() && (token.front() != 'x' || token.size() == 1)) {
      return std::nullopt;
    }
    token.remove_prefix(token.empty() ? 0 : 1);
  }
  return numbers == 2 || numbers == 3 ? std::optional(elements) : std::nullopt;
}

std::int64_t OutputElements(const KernelTraits& of) {
  std::int64_t elements = 0;
  for (const Value* output : of.outputs) {
    elements = std::max(elements, output == nullptr ? 0 : output->numel());
  }
  return elements;
}

/// Thread blocks' worth of work, counted in what one multiprocessor does at a time; 0: not known.
std::int64_t TilesOf(const KernelTraits& of, const Kernel& kernel, const GpuSpec& gpu) {
  if (kernel.ctas != gpu.multiprocessors) {
    return kernel.ctas;
  }
  const std::optional<std::int64_t> tile = TileElements(kernel.name);
  return tile ? DivideUp(OutputElements(of), *tile) : 0;
}

std::optional<Rate> ProductBesideCollective(std::int64_t tiles, const GpuSpec& gpu) {
  const int lost = gpu.contention.collective_multiprocessors;
  if (lost == 0 || lost >= gpu.multiprocessors || tiles == 0) {
    return std::nullopt;
  }
  const std::int64_t alone = DivideUp(tiles, gpu.multiprocessors);
  const std::int64_t beside = DivideUp(tiles, gpu.multiprocessors - lost);
  return Rate::Of(alone, beside);
}

/// Tiles of the thread blocks that find no multiprocessor beside a collective, and behind how many
/// of their own others end whose places they take.
struct OwnTiles {
  std::int64_t count = 0;
  std::int64_t latest = 0;
};

/// A persistent kernel of S thread blocks: block i is given tiles i and i + S, each further one to
/// whoever is free. The last ones wait, as many as the collective takes multiprocessors.
OwnTiles OwnTilesOf(std::int64_t tiles, const GpuSpec& gpu) {
  const std::int64_t blocks = gpu.multiprocessors;
  const std::int64_t waiting = gpu.contention.collective_multiprocessors;
  const std::int64_t launched = blocks - waiting;
  if (waiting == 0 || launched <= 0 || tiles <= launched) {
    return {};
  }
  if (tiles <= blocks) {
    return {1, 1};
  }
  if (tiles < 2 * blocks) {
    const std::int64_t with_two = tiles - blocks;
    return {launched < with_two ? 2 : 1, launched - with_two >= waiting ? 1 : 2};
  }
  return {2, (tiles - 2 * waiting) / launched};
}

std::optional<Rate> StreamingBesideCollective(Duration device,
                                              std::int64_t kernels,
                                              const GpuSpec& gpu) {
  const Contention& contention = gpu.contention;
  if (contention.streaming_kernel == Duration() || device == Duration()) {
    return std::nullopt;
  }
  const std::int64_t kernel = std::max<std::int64_t>(1, device.ns() / kernels);
  const Rate rate = contention.RateOf(DeviceUse::kStreaming, DeviceUse::kCollective);
  const std::int64_t share = rate.share().Rest().PartOf(kernel);
  const std::int64_t lost = std::min(kernel / 2, contention.streaming_kernel.ns() + share);
  return Rate::Of(kernel, kernel + lost);
}

}  // namespace

std::optional<std::int64_t> TileElements(std::string_view kernel) {
  while (!kernel.empty()) {
    const std::size_t end = std::min(kernel.find('_'), kernel.size());
    if (const auto tile = TileOf(kernel.substr(0, end))) {
      return tile;
    }
    kernel.remove_prefix(std::min(end + 1, kernel.size()));
  }
  return std::nullopt;
}

LaunchedKernels FindKernels(const Profile& profile, const OpProfile& op) {
  LaunchedKernels found;
  Duration all;
  for (const std::uint32_t index : op.kernels) {
    const Kernel& kernel = profile.kernels[index];
    all += kernel.device_time;
    if (found.longest == nullptr || kernel.device_time > found.longest->device_time) {
      found.longest = &kernel;
    }
  }
  found.count = std::max<std::int64_t>(1, static_cast<std::int64_t>(op.kernels.size()));
  if (all > Duration()) {
    found.share =
        static_cast<double>(found.longest->device_time.ns()) / static_cast<double>(all.ns());
  }
  return found;
}

MultiprocessorShare ShareOf(const KernelTraits& of,
                            DeviceUse use,
                            Duration device,
                            const LaunchedKernels& kernels,
                            const GpuSpec& gpu) {
  MultiprocessorShare share;
  if (use == DeviceUse::kStreaming) {
    share.beside_collective = StreamingBesideCollective(device, kernels.count, gpu);
    return share;
  }
  share.room = device;
  const Kernel* kernel = kernels.longest;
  if (kernel != nullptr && kernel->ctas > gpu.multiprocessors) {
    // The whole product would not fit for a kernel of an hour.
    share.room = Duration::FromNs(device.ns() / kernel->ctas * gpu.multiprocessors +
                                  device.ns() % kernel->ctas * gpu.multiprocessors / kernel->ctas);
  }
  if (of.family == KernelFamily::kGroupedProduct &&
      (kernel == nullptr || kernel->ctas == gpu.multiprocessors)) {
    share.own_tiles = device;
    share.own_latest = device;
    share.beside_collective = Rate();
    return share;
  }
  if (use == DeviceUse::kMatmul && kernel != nullptr) {
    const std::int64_t tiles = TilesOf(of, *kernel, gpu);
    share.beside_collective = ProductBesideCollective(tiles, gpu);
    const std::int64_t waves = std::max<std::int64_t>(1, DivideUp(tiles, gpu.multiprocessors));
    const Duration longest = Scaled(device, kernels.share);
    const Duration wave = Duration::FromNs(longest.ns() / waves);
    if (tiles % gpu.multiprocessors != 0) {
      share.last_wave = wave;
      share.last_free = static_cast<std::int32_t>(waves * gpu.multiprocessors - tiles);
    }
    if (kernel->ctas <= gpu.multiprocessors) {
      const OwnTiles own = OwnTilesOf(tiles, gpu);
      share.own_tiles = wave * own.count;
      share.own_latest = wave * own.latest;
    }
  }
  return share;
}

}  // namespace dcsim
