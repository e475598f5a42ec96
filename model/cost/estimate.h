#pragma once

#include <cstdint>
#include <string_view>

#include "model/base/units.h"

namespace dcsim {

/// Where a number comes from. `kEstimated` is a formula without a measurement of the thing itself.
enum class Source : std::uint8_t { kMeasured, kInterpolated, kEstimated };

std::string_view SourceName(Source source);

/// A time with its source.
struct Estimate {
  Duration time;
  Source source = Source::kEstimated;
};

}  // namespace dcsim
