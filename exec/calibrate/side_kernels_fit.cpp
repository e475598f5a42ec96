#include "exec/calibrate/side_kernels_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace dcsim::exec {
namespace {

/// For how much of their time alone many kernels ran beside one product.
struct LeftByProduct {
  double ns = 0;         // measured
  double last_wave = 0;  // ns
  double free = 0;       // multiprocessors, meanwhile
  double moving = 0;     // share of the kernels' time in which they move bytes
  double kernel = 0;     // what one of them takes alone, ns: one at least runs

  double Law(double needed, double between) const {
    if (free == 0) {
      return std::max(kernel, between);
    }
    const double times = 1 - moving + moving * std::max(1.0, needed / free);
    return std::max(kernel, between + last_wave / times);
  }
};

LeftByProduct LeftBy(const ContentionSample& sample, int multiprocessors) {
  const std::int64_t waves = DivideUp(sample.tiles, multiprocessors);
  const auto alone = static_cast<double>(sample.compute_alone.ns());
  const double share = sample.beside_alone.seconds() / sample.beside_time.seconds();
  return {alone / sample.compute_speed * share, alone / static_cast<double>(waves),
          static_cast<double>(waves * multiprocessors - sample.tiles),
          sample.beside_moving.seconds() / sample.beside_alone.seconds(),
          static_cast<double>(sample.beside_alone.ns() / sample.kernels)};
}

/// By kind of streaming kernel ("add").
using LaterByKind = std::map<std::string, std::vector<Duration>>;

LaterByKind FindLater(std::span<const ContentionSample> samples) {
  constexpr Duration kLong = Duration::FromUs(15);
  LaterByKind by_kind;
  for (const ContentionSample& s : samples) {
    if (BesideMany(s) && s.use == DeviceUse::kStreaming && s.compute_alone >= kLong) {
      by_kind[s.compute.substr(0, s.compute.find(' '))].push_back(
          Duration::FromNs((s.beside_time - s.beside_alone).ns() / s.kernels));
    }
  }
  return by_kind;
}

void FitLater(const LaterByKind& by_kind, SideKernelsFit& fit) {
  std::vector<Duration> all;
  std::vector<double> means;
  for (const auto& [kind, times] : by_kind) {
    const Duration sum = std::accumulate(times.begin(), times.end(), Duration());
    means.push_back(static_cast<double>(sum.ns()) / static_cast<double>(times.size()));
    all.insert(all.end(), times.begin(), times.end());
  }
  fit.later = RangeOf(all);
  fit.kernels.later = Duration::FromNs(std::llround(std::max(0.0, Mean(means))));
}

void FitProducts(const std::vector<LeftByProduct>& left, int multiprocessors, SideKernelsFit& fit) {
  const auto cost = [&](double needed, double between) {
    double sum = 0;
    for (const LeftByProduct& each : left) {
      sum += SquaredLog(each.Law(needed, between), each.ns);
    }
    return sum;
  };
  const auto best_between = [&](double needed) {
    return Least(250, 30'000, 250, [&](double between) { return cost(needed, between); });
  };
  const double needed =
      Least(4, multiprocessors, 2, [&](double x) { return cost(x, best_between(x)); });
  const double between = best_between(needed);
  fit.copy_multiprocessors = static_cast<int>(needed);
  fit.kernels.between = Duration::FromNs(static_cast<std::int64_t>(between));
  std::vector<double> rates;
  std::vector<double> errors;
  for (const LeftByProduct& each : left) {
    rates.push_back(std::min(1.0, each.free / needed));
    errors.push_back(std::abs(each.Law(needed, between) / each.ns - 1));
  }
  fit.copy_rate = Mean(rates);
  fit.error = Mean(errors);
}

}  // namespace

bool BesideMany(const ContentionSample& sample) {
  return sample.beside_use == DeviceUse::kSideStreaming && sample.kernels > 1;
}

std::optional<SideKernelsFit> FitSideKernels(std::span<const ContentionSample> samples,
                                             int multiprocessors) {
  std::vector<LeftByProduct> left;
  std::vector<double> speeds;
  for (const ContentionSample& s : samples) {
    if (BesideMany(s) && s.use == DeviceUse::kMatmul && s.tiles > 0) {
      left.push_back(LeftBy(s, multiprocessors));
      speeds.push_back(s.compute_speed);
    }
  }
  const LaterByKind later = FindLater(samples);
  if (left.empty() || later.empty()) {
    return std::nullopt;
  }
  SideKernelsFit fit;
  FitLater(later, fit);
  FitProducts(left, multiprocessors, fit);
  fit.product_speed = Mean(speeds);
  return fit;
}

}  // namespace dcsim::exec
