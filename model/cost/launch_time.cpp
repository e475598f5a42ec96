#include "model/cost/launch_time.h"

#include <algorithm>
#include <string_view>

#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kCache = std::int64_t{50} << 20;  // L2 of an H100 or H200
constexpr std::int64_t kThreads = 2048;                  // of a multiprocessor
constexpr std::int64_t kWarp = 32;

/// A launch of a graph with its kernel.
struct Launched {
  const Op& op;
  const TritonKernel& kernel;

  /// The number that is passed for an argument, 1 where it is compiled in or there is none.
  std::int64_t Number(std::string_view name) const {
    for (std::size_t i = 0; i < kernel.signature.size(); ++i) {
      const auto* number = std::get_if<std::int64_t>(&op.arguments[i]);
      if (number != nullptr && kernel.signature[i].name == name) {
        return std::max<std::int64_t>(1, *number);
      }
    }
    return 1;
  }
  /// Of the first configuration; 1 where it has none of that name.
  std::int64_t Setting(const std::string& name) const {
    const auto found = kernel.configs.front().find(name);
    return found == kernel.configs.front().end() ? 1 : std::max<std::int64_t>(1, found->second);
  }
  bool Sets(const std::string& name) const { return kernel.configs.front().contains(name); }
  std::int64_t written_elements() const {
    return Number("xnumel") * Number("ynumel") * Number("znumel");
  }
  /// Of a thread block.
  std::int64_t threads() const { return kWarp * Setting("num_warps"); }
  std::int64_t blocks() const {
    const auto along = [&](std::string_view numel, const std::string& block) {
      return (Number(numel) + Setting(block) - 1) / Setting(block);
    };
    return along("xnumel", Sets("RSPLIT_SIZE") ? "RSPLIT_SIZE" : "XBLOCK") *
           along("ynumel", "YBLOCK") * along("znumel", "ZBLOCK");
  }
};

Launched Find(const KernelTraits& of) {
  return {*of.op, *of.triton};
}

/// Seconds of the functions that it computes of each element. The exponentials of a softmax that is
/// put together while it is read are in the rate of that.
double ComputingSeconds(const LaunchWork& work, const TritonRates& rates) {
  double seconds = 0;
  const auto add = [&](std::int64_t calls, double rate) {
    seconds += static_cast<double>(calls) / rate;
  };
  add(work.math.trigonometric_calls, rates.trigonometric_per_second);
  add(work.math.error_functions, rates.error_functions_per_second);
  if (work.math.combines_softmax) {
    add(1, rates.online_softmax_per_second);
  } else {
    add(work.math.exponentials, rates.exponentials_per_second);
  }
  return seconds * static_cast<double>(work.elements);
}

/// Whether what thread blocks have in work at a time is too much for a second loop to find it in
/// the cache.
bool LeavesCache(const Launched& of, Bytes argument, const GpuSpec& gpu) {
  const std::int64_t rows = of.written_elements();
  const std::int64_t blocks =
      gpu.multiprocessors * std::max<std::int64_t>(1, kThreads / of.threads());
  const std::int64_t in_work = std::min(rows, blocks * of.Setting("XBLOCK"));
  return of.Number("r0_numel") > of.Setting("R0_BLOCK") &&
         argument.count() / rows * in_work > kCache;
}

/// Of the bandwidth, where there are threads enough.
double TritonRates::*ShareOf(const Launched& of) {
  // Blocks of so many results lie along what is contiguous, and reduce along something else.
  constexpr std::int64_t kOuterBlock = 16;
  switch (of.kernel.kind) {
    case KernelKind::kPointwise:
      return of.Sets("YBLOCK") ? &TritonRates::tiles : &TritonRates::pointwise;
    case KernelKind::kReduction:
      if (of.kernel.math.mixes_layouts) {
        return &TritonRates::mixed_reduction;
      }
      return of.Setting("XBLOCK") >= kOuterBlock ? &TritonRates::outer_reduction
                                                 : &TritonRates::reduction;
    case KernelKind::kPersistentReduction:
      if (of.kernel.math.mixes_layouts) {
        return &TritonRates::mixed_reduction;
      }
      return of.Sets("RSPLIT_SIZE") ? &TritonRates::outer_reduction
                                    : &TritonRates::persistent_reduction;
  }
  return nullptr;
}

/// What a launch of few threads reaches of its share.
double Occupied(const LaunchWork& work, const TritonRates& rates, const GpuSpec& gpu) {
  const double full = static_cast<double>(ThreadsOf(gpu)) * rates.full_threads;
  return std::min(1.0, static_cast<double>(work.threads) / full);
}

}  // namespace

Bytes LaunchedBytes(const KernelTraits& of, const GpuSpec& gpu) {
  const Launched launched = Find(of);
  Bytes bytes = of.written;
  for (const LaunchedRead& read : of.launched_reads) {
    const bool again = read.passes > 1 && LeavesCache(launched, read.bytes, gpu);
    bytes += read.bytes * (again ? read.passes : 1);
  }
  return bytes;
}

LaunchWork LaunchWorkOf(const KernelTraits& of, const GpuSpec& gpu) {
  const Launched launched = Find(of);
  return {LaunchedBytes(of, gpu), ShareOf(launched), launched.blocks() * launched.threads(),
          launched.written_elements() * launched.Number("r0_numel"), of.triton->math};
}

std::int64_t ThreadsOf(const GpuSpec& gpu) {
  return gpu.multiprocessors * kThreads;
}

double LaunchWorkSeconds(const LaunchWork& work, const TritonRates& rates, const GpuSpec& gpu) {
  const double share = rates.*work.share * Occupied(work, rates, gpu);
  const double moving = TransferSeconds(work.bytes, gpu, share);
  return rates.start.seconds() + std::max(moving, ComputingSeconds(work, rates));
}

std::optional<double> LaunchSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  if (of.triton == nullptr) {
    return std::nullopt;
  }
  if (gpu.triton == nullptr) {
    return TransferSeconds(LaunchedBytes(of, gpu), gpu, gpu.bandwidth_efficiency);
  }
  return LaunchWorkSeconds(LaunchWorkOf(of, gpu), *gpu.triton, gpu);
}

}  // namespace dcsim
