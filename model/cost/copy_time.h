#pragma once

#include <optional>

#include "model/cost/kernel_traits.h"

namespace dcsim {

struct GpuSpec;

/// Time of an op that moves its operands as they are, on a GPU whose file has `kernels`, seconds:
///
///   cat, stack            bytes; by elements where a part is not contiguous
///   copy                  all that the first operand spans, then the second over its elements
///   padding, slices'      filling the result, then copying the operand into it
///   backward
///   roll                  a kernel a dimension
///   sort                  the time of sorting, however little
///
/// Source: docs/design/costs/elementwise.md.
std::optional<double> CopySeconds(const KernelTraits& of, const GpuSpec& gpu);

}  // namespace dcsim
