#include "model/cost/estimate.h"

#include <array>

namespace dcsim {

std::string_view SourceName(Source source) {
  constexpr std::array<std::string_view, 3> kNames = {"measured", "interpolated", "estimated"};
  return kNames[static_cast<std::size_t>(source)];
}

}  // namespace dcsim
