#pragma once

#include <cmath>

#include "model/base/units.h"

namespace dcsim {

/// To the nearest whole nanosecond, from -kLongest to kLongest; kLongest of no number.
inline Duration NearestNs(double ns) {
  const auto longest = static_cast<double>(kLongest.ns());
  return ns < longest ? Duration::FromNs(std::llround(ns < -longest ? -longest : ns)) : kLongest;
}

/// Without the part of a nanosecond that it has besides; in the same bounds.
inline Duration WholeNs(double ns) {
  return NearestNs(std::trunc(ns));
}

/// The same of a time.
inline Duration Scaled(Duration time, double factor) {
  return NearestNs(static_cast<double>(time.ns()) * factor);
}

}  // namespace dcsim
