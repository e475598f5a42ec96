#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/rate.h"
#include "model/base/units.h"

namespace dcsim::exec {

/// From the least to the most that samples say.
struct TimeRange {
  Duration least;
  Duration most;
  std::size_t samples = 0;
};

TimeRange RangeOf(const std::vector<Duration>& times);

/// The same of shares, and their mean.
struct ShareRange {
  double mean = 1;
  double least = 1;
  double most = 1;
  std::size_t samples = 0;
};

ShareRange RangeOf(const std::vector<double>& shares);

/// 1 of no values.
double Mean(const std::vector<double>& values);

/// As Contention has speeds, 0.01 at least.
Rate RateOf(double share);

/// Argument with the least cost, of `from`, `from` + `step`, … up to `to`.
double Least(double from, double to, double step, const std::function<double(double)>& cost);

double SquaredLog(double a, double b);

}  // namespace dcsim::exec
