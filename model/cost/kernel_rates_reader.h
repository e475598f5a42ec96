#pragma once

#include "model/cost/kernel_rates.h"
#include "model/ir/document.h"

namespace dcsim {

/// Reads `kernels` of a dc-gpu/1 object, but its "source". Faults go to the reader's.
KernelRates ReadKernelRates(ObjectReader& fields);

}  // namespace dcsim
