#pragma once

#include <cstdint>
#include <string_view>

#include "model/base/units.h"

namespace dcsim {

/// Where a number comes from. `kEstimated` is a formula without a measurement of the thing itself.
enum class Source : std::uint8_t { kMeasured, kInterpolated, kEstimated };

std::string_view SourceName(Source source);

/// How far a collective is from those that were measured, in powers of two: its size from the
/// nearest measured size, its number of ranks from the nearest measured number.
struct MeasuredDistance {
  double sizes = 0;
  double ranks = 0;
};

/// A time with its source.
struct Estimate {
  Duration time;
  Source source = Source::kEstimated;
  MeasuredDistance distance{};  // of a collective whose time follows from measured ones
  bool of_link = false;         // of a collective: nothing like it was measured, the link's figures
                                // alone
};

}  // namespace dcsim
