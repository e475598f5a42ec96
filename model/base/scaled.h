#pragma once

#include <cmath>

#include "model/base/units.h"

namespace dcsim {

/// To the nearest nanosecond.
inline Duration Scaled(Duration time, double factor) {
  return Duration::FromNs(std::llround(static_cast<double>(time.ns()) * factor));
}

}  // namespace dcsim
