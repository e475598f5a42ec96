#pragma once

#include <string_view>

namespace dcsim {

/// Whether a profile among the committed workloads has shown what kernels of the operator take
/// ("aten::mm"), so that its law without a profile was compared with them (docs/design/costs.md).
/// The time of another is a guess from its bytes and FLOPs, or by the law of kernels like it.
bool IsShown(std::string_view target);

}  // namespace dcsim
