#include "model/cost/launch_time.h"

#include <algorithm>
#include <string_view>

#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

constexpr std::int64_t kCache = std::int64_t{50} << 20;  // L2 of an H100 or H200

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
  std::int64_t written_elements() const {
    return Number("xnumel") * Number("ynumel") * Number("znumel");
  }
};

Launched Find(const KernelTraits& of) {
  return {*of.op, *of.triton};
}

/// Seconds of the functions that it computes of each element. The exponentials of a softmax that is
/// put together while it is read are in the rate of that.
double ComputingSeconds(const Launched& of, const TritonRates& rates) {
  const KernelMath& math = of.kernel.math;
  double seconds = 0;
  const auto add = [&](std::int64_t calls, double rate) {
    seconds += static_cast<double>(calls) / rate;
  };
  add(math.trigonometric_calls, rates.trigonometric_per_second);
  add(math.error_functions, rates.error_functions_per_second);
  if (math.combines_softmax) {
    add(1, rates.online_softmax_per_second);
  } else {
    add(math.exponentials, rates.exponentials_per_second);
  }
  return seconds * static_cast<double>(of.written_elements() * of.Number("r0_numel"));
}

/// Whether what thread blocks have in work at a time is too much for a second loop to find it in
/// the cache.
bool LeavesCache(const Launched& of, Bytes argument, const GpuSpec& gpu) {
  constexpr std::int64_t kThreads = 2048;  // of a multiprocessor
  constexpr std::int64_t kWarp = 32;
  const std::int64_t rows = of.written_elements();
  const std::int64_t blocks =
      gpu.multiprocessors * std::max<std::int64_t>(1, kThreads / (kWarp * of.Setting("num_warps")));
  const std::int64_t in_work = std::min(rows, blocks * of.Setting("XBLOCK"));
  return of.Number("r0_numel") > of.Setting("R0_BLOCK") &&
         argument.count() / rows * in_work > kCache;
}

double ShareOf(KernelKind kind, const TritonRates& rates) {
  switch (kind) {
    case KernelKind::kPointwise:
      return rates.pointwise;
    case KernelKind::kReduction:
      return rates.reduction;
    case KernelKind::kPersistentReduction:
      return rates.persistent_reduction;
  }
  return 1;
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

std::optional<double> LaunchSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  if (of.triton == nullptr) {
    return std::nullopt;
  }
  const Bytes bytes = LaunchedBytes(of, gpu);
  if (!gpu.kernels || !gpu.kernels->triton) {
    return TransferSeconds(bytes, gpu, gpu.bandwidth_efficiency);
  }
  const TritonRates& rates = *gpu.kernels->triton;
  const Launched launched = Find(of);
  const double moving = TransferSeconds(bytes, gpu, ShareOf(launched.kernel.kind, rates));
  return rates.start.seconds() + std::max(moving, ComputingSeconds(launched, rates));
}

}  // namespace dcsim
