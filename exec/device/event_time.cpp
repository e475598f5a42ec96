#include "exec/device/event_time.h"

#include <cmath>

namespace dcsim::exec {

Duration TimeBetween(const at::cuda::CUDAEvent& from, const at::cuda::CUDAEvent& to) {
  constexpr double kNsAMs = 1e6;
  return Duration::FromNs(std::llround(static_cast<double>(from.elapsed_time(to)) * kNsAMs));
}

}  // namespace dcsim::exec
