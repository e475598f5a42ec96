#include "model/cost/memory_load.h"

#include <algorithm>
#include <cmath>

#include "model/cost/kernel_models.h"

namespace dcsim {
namespace {

/// Writes hold up others as much as so many reads.
constexpr double kWrite = 2;
constexpr double kExponent = 2.5;

}  // namespace

MovedBytes MovedByPattern(MemoryPattern pattern, Bytes moved) {
  const Bytes written = pattern == MemoryPattern::kNorm ? Bytes() : Bytes(moved.count() / 2);
  return {moved - written, written};
}

double MemoryTraffic(const MovedBytes& moved, Duration device, Bytes cache) {
  const auto read = static_cast<double>(moved.read.count());
  const auto written = static_cast<double>(moved.written.count());
  const auto held = static_cast<double>(std::max(Bytes(1), cache).count());
  const double to_memory = std::min(1.0, (read + written) / held);
  return device == Duration() ? 0 : (read + kWrite * written) * to_memory / device.seconds();
}

double MemoryLoad(double traffic, double full) {
  return std::pow(std::min(1.0, traffic / full), kExponent);
}

Share MemoryLoad(const MovedBytes& moved, Duration device, const GpuSpec& gpu) {
  if (!gpu.contention.beside_memory) {
    return {};
  }
  // A plain kernel writes half of what it moves.
  const double reached = gpu.kernels ? gpu.kernels->plain : gpu.bandwidth_efficiency;
  const double full =
      static_cast<double>(gpu.memory_bandwidth.count()) * reached * (1 + kWrite) / 2;
  const double traffic = MemoryTraffic(moved, device, gpu.contention.beside_memory->cache);
  return Share::Nearest(MemoryLoad(traffic, full));
}

}  // namespace dcsim
