#pragma once

#include <cstdint>
#include <vector>

#include "exec/profiler/kernel_records.h"

namespace dcsim::exec {

/// Of each of `ops` ops, by the records' labels: ns in which at least one of its kernels ran. cuDNN
/// runs the groups of a grouped convolution on streams of its own, beside each other.
std::vector<std::int64_t> BusyByOp(const std::vector<KernelRecord>& records, std::size_t ops);

}  // namespace dcsim::exec
