#include "model/graph/spanned_elements.h"

namespace dcsim {

std::int64_t SpannedElements(const Value& value) {
  std::int64_t spanned = 1;
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    spanned += (value.shape[i] - 1) * value.strides[i];
  }
  return spanned;
}

}  // namespace dcsim
