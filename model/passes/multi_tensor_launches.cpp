#include "model/passes/multi_tensor_launches.h"

#include <array>

#include "model/base/units.h"

namespace dcsim {

std::size_t MultiTensorLaunches(std::span<const std::int64_t> sizes, std::size_t lists) {
  constexpr std::int64_t kChunk = 65536;  // elements of a thread block
  constexpr std::int64_t kBlocks = 320;   // of a launch
  constexpr std::array<std::int64_t, 5> kTensors = {110, 64, 48, 36, 30};  // of a launch
  std::size_t launches = 0;
  std::int64_t blocks = 0;
  std::int64_t tensors = 0;
  for (const std::int64_t size : sizes) {
    if (size == 0) {
      continue;
    }
    ++tensors;
    const std::int64_t chunks = DivideUp(size, kChunk);
    const std::int64_t full = (blocks + chunks) / kBlocks;
    launches += static_cast<std::size_t>(full);
    if (full > 0) {
      blocks = (blocks + chunks) % kBlocks;
      tensors = blocks > 0 ? 1 : 0;  // the rest of this one
    } else {
      blocks += chunks;
    }
    if (tensors == kTensors[lists - 1]) {
      ++launches;
      blocks = 0;
      tensors = 0;
    }
  }
  return launches + (blocks > 0 ? 1 : 0);
}

}  // namespace dcsim
