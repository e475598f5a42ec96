#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "exec/reference/reference_file.h"

namespace dcsim::exec {

/// Fingerprint of the gradient of the parameter `name` (float32, any device; counted in row-major
/// order).
Fingerprint FingerprintOf(const at::Tensor& gradient, const std::string& name, std::uint64_t seed);

/// Estimate of |a - b| / |a| from projections, good to about 18 %; 0 for equal hashes.
double RelativeError(const Fingerprint& a, const Fingerprint& b);

}  // namespace dcsim::exec
