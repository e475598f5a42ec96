#pragma once

#include <cstdint>

namespace dcsim {

/// Who made the kernels of a graph's ops: PyTorch's operators, or its compiler.
enum class Backend : std::uint8_t { kAten, kInductor };

}  // namespace dcsim
