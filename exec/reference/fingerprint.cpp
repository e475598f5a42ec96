#include "exec/reference/fingerprint.h"

#include <cmath>

#include "exec/reference/reference_data.h"
#include "model/base/text.h"

namespace dcsim::exec {

Fingerprint FingerprintOf(const at::Tensor& gradient, const std::string& name, std::uint64_t seed) {
  const at::Tensor host = gradient.detach().to(at::kCPU, at::kFloat).contiguous();
  const float* data = host.const_data_ptr<float>();
  const auto count = static_cast<std::size_t>(host.numel());
  const std::uint64_t state = seed ^ HashBytes("projections/" + name);
  Fingerprint fingerprint;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double element = data[i];
    squares += element * element;
    const std::uint64_t word = SplitMix64(state, i);
    for (std::size_t k = 0; k < kProjections; ++k) {
      fingerprint.projections[k] += (word >> k & 1U) != 0 ? -element : element;
    }
  }
  fingerprint.norm = std::sqrt(squares);
  fingerprint.hash =
      HashBytes(std::string_view(reinterpret_cast<const char*>(data), count * sizeof(float)));
  return fingerprint;
}

double RelativeError(const Fingerprint& a, const Fingerprint& b) {
  if (a.hash == b.hash) {
    return 0;
  }
  double squares = 0;
  for (std::size_t k = 0; k < kProjections; ++k) {
    const double difference = a.projections[k] - b.projections[k];
    squares += difference * difference;
  }
  const double error = std::sqrt(squares / static_cast<double>(kProjections));
  return a.norm == 0 ? error : error / a.norm;
}

}  // namespace dcsim::exec
