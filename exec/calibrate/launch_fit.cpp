#include "exec/calibrate/launch_fit.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "exec/calibrate/fit_search.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr double kMostPerSecond = 1e13;
constexpr double kLeastShown = 0.001;  // of the mean of |log(predicted / measured)|

/// A number with three significant digits, as files have it.
double Rounded(double number) {
  const double unit = std::pow(10, std::floor(std::log10(number)) - 2);
  return std::round(std::round(number / unit) * unit);
}

/// `count` values from the highest on, so that of equally good ones the highest is found.
std::vector<double> Shares(int count) {
  std::vector<double> shares;
  for (int i = count; i > 0; --i) {
    shares.push_back(static_cast<double>(i) / count);
  }
  return shares;
}

std::vector<double> PerSecond() {
  constexpr int kDecades = 3;
  constexpr int kOfDecade = 100;
  std::vector<double> rates;
  for (int i = 0; i <= kDecades * kOfDecade; ++i) {
    rates.push_back(Rounded(kMostPerSecond * std::pow(10, -static_cast<double>(i) / kOfDecade)));
  }
  return rates;
}

std::vector<double> Starts() {
  constexpr int kCount = 30;
  constexpr int kStepNs = 100;
  std::vector<double> starts;
  for (int i = 0; i <= kCount; ++i) {
    starts.push_back(i * kStepNs);
  }
  return starts;
}

/// One of the rates, and the values that it may take. Times are in ns.
struct Coordinate {
  RateField<TritonRates, double> number{};
  std::string_view key;
  bool is_time = false;
  std::vector<double> grid;

  bool is_per_second() const { return !is_time && number.range == RateRange::kPositive; }
  bool is_threads() const { return !is_time && number.member == &TritonRates::full_threads; }
  double Get(const TritonRates& rates) const {
    return is_time ? static_cast<double>(rates.start.ns()) : rates.*number.member;
  }
  void Set(TritonRates& rates, double value) const {
    if (is_time) {
      rates.start = Duration::FromNs(static_cast<std::int64_t>(value));
    } else {
      rates.*number.member = value;
    }
  }
};

Coordinate CoordinateOf(const RateField<TritonRates, double>& field) {
  constexpr int kShares = 100;
  constexpr int kFullThreads = 20;
  if (field.member == &TritonRates::full_threads) {
    std::vector<double> grid = Shares(kFullThreads);
    std::reverse(grid.begin(), grid.end());  // fewest first: they cost nothing
    return {field, field.key, false, grid};
  }
  return {field, field.key, false,
          field.range == RateRange::kShare ? Shares(kShares) : PerSecond()};
}

Coordinate CoordinateOf(const RateField<TritonRates, Duration>& field) {
  return {{}, field.key, true, Starts()};
}

std::vector<Coordinate> Coordinates() {
  return std::apply([](const auto&... field) { return std::vector{CoordinateOf(field)...}; },
                    TritonRates::Fields());
}

/// Rates under which nothing costs more than without any.
TritonRates PlainRates(const std::vector<Coordinate>& coordinates, const GpuSpec& gpu) {
  TritonRates rates;
  for (const Coordinate& each : coordinates) {
    const bool share = each.number.range == RateRange::kShare && !each.is_threads();
    each.Set(rates, share && !each.is_time ? gpu.bandwidth_efficiency : each.grid.front());
  }
  return rates;
}

bool Computes(const KernelMath& math, double TritonRates::*rate) {
  if (rate == &TritonRates::online_softmax_per_second) {
    return math.combines_softmax;
  }
  if (rate == &TritonRates::exponentials_per_second) {
    return math.exponentials > 0 && !math.combines_softmax;
  }
  return rate == &TritonRates::trigonometric_per_second ? math.trigonometric_calls > 0
                                                        : math.error_functions > 0;
}

/// Whether the time of a launch may follow from the rate.
bool MayDepend(const LaunchWork& work, const Coordinate& on, const GpuSpec& gpu) {
  if (on.is_time) {
    return true;
  }
  if (on.is_threads()) {
    return work.threads < ThreadsOf(gpu);
  }
  return on.number.range == RateRange::kShare ? work.share == on.number.member
                                              : Computes(work.math, on.number.member);
}

struct WeightedSample {
  LaunchSample sample;
  double weight = 0;
};

/// The search for the rates of some workloads.
class LaunchSearch {
 public:
  LaunchSearch(const std::vector<const WorkloadLaunches*>& workloads, const GpuSpec& gpu)
      : gpu_(gpu),
        coordinates_(Coordinates()),
        rates_(PlainRates(coordinates_, gpu)) {
    kept_ = gpu.triton == nullptr ? rates_ : *gpu.triton;
    for (const WorkloadLaunches* workload : workloads) {
      for (const LaunchSample& sample : workload->samples) {
        samples_.push_back(
            {sample, static_cast<double>(sample.count) * sample.seconds / workload->seconds});
      }
    }
    for (const WeightedSample& sample : samples_) {
      all_.push_back(&sample);
    }
    least_shown_ = kLeastShown * static_cast<double>(workloads.size());
    for (const Coordinate& each : coordinates_) {
      std::vector<const WeightedSample*>& depending = depending_.emplace_back();
      double weight = 0;
      for (const WeightedSample& sample : samples_) {
        if (MayDepend(sample.sample.work, each, gpu)) {
          depending.push_back(&sample);
          weight += sample.weight;
        }
      }
      evidence_.push_back({each.key, depending.size(),
                           weight / static_cast<double>(workloads.size()), /*shown=*/false});
    }
  }

  void Run() {
    constexpr int kMostPasses = 4;
    SearchAlone();
    for (int pass = 1; pass < kMostPasses && SearchTogether(); ++pass) {
      SearchAlone();
    }
  }

  const TritonRates& rates() const { return rates_; }
  const std::vector<RateEvidence>& evidence() const { return evidence_; }

 private:
  static double Loss(const std::vector<const WeightedSample*>& samples,
                     const TritonRates& rates,
                     const GpuSpec& gpu) {
    double loss = 0;
    for (const WeightedSample* each : samples) {
      const double predicted = LaunchWorkSeconds(each->sample.work, rates, gpu);
      loss += each->weight * std::abs(std::log(predicted / each->sample.seconds));
    }
    return loss;
  }

  struct Found {
    double value = 0;
    bool shown = false;
  };

  /// The best value of a rate, beside the others.
  Found FindBest(std::size_t coordinate, TritonRates rates) const {
    const Coordinate& of = coordinates_[coordinate];
    const auto value = [&of](double place) { return of.grid[static_cast<std::size_t>(place)]; };
    double first = 0;
    double most = 0;
    double least = 0;
    const auto loss = [&](double place) {
      of.Set(rates, value(place));
      const double here = Loss(depending_[coordinate], rates, gpu_);
      first = place == 0 ? here : first;
      most = place == 0 ? here : std::max(most, here);
      least = place == 0 ? here : std::min(least, here);
      return here;
    };
    const double best = Least(0, static_cast<double>(of.grid.size() - 1), 1, loss);
    const double told = (of.is_per_second() ? first : most) - least;
    return {value(best), told > least_shown_};
  }

  /// Each beside the others, until nothing changes.
  void SearchAlone() {
    constexpr int kMostRounds = 20;
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
      changed = false;
      for (std::size_t i = 0; i < coordinates_.size(); ++i) {
        const Coordinate& of = coordinates_[i];
        const double before = of.Get(rates_);
        const Found found = FindBest(i, rates_);
        evidence_[i].shown = found.shown;
        of.Set(rates_, found.shown ? found.value : of.Get(kept_));
        changed = changed || of.Get(rates_) != before;
      }
    }
  }

  /// Whether one's optimum follows from the other's, so that alone neither leaves a bad one:
  /// functions that one launch computes; everything behind a start or with few threads.
  bool Coupled(std::size_t coordinate, std::size_t other) const {
    const Coordinate& of = coordinates_[coordinate];
    if (coordinate == other || !of.is_per_second()) {
      return coordinate != other && (of.is_time || of.is_threads());
    }
    const auto& samples = depending_[other];
    return coordinates_[other].is_per_second() &&
           std::any_of(samples.begin(), samples.end(), [&](const WeightedSample* each) {
             return MayDepend(each->sample.work, of, gpu_);
           });
  }

  /// The best that `others` make of rates that have a value of their own.
  TritonRates Follow(TritonRates rates, const std::vector<std::size_t>& others) const {
    constexpr int kRounds = 2;
    for (int round = 0; round < kRounds; ++round) {
      for (const std::size_t each : others) {
        coordinates_[each].Set(rates, FindBest(each, rates).value);
      }
    }
    return rates;
  }

  /// Each with those that are coupled to it. Whether anything got better.
  bool SearchTogether() {
    constexpr double kBetter = 1e-9;
    bool changed = false;
    for (std::size_t i = 0; i < coordinates_.size(); ++i) {
      std::vector<std::size_t> others;
      for (std::size_t j = 0; j < coordinates_.size(); ++j) {
        if (Coupled(i, j)) {
          others.push_back(j);
        }
      }
      double least = Loss(all_, rates_, gpu_) * (1 - kBetter);
      TritonRates best = rates_;
      for (std::size_t place = 0; !others.empty() && place < coordinates_[i].grid.size(); ++place) {
        TritonRates rates = rates_;
        coordinates_[i].Set(rates, coordinates_[i].grid[place]);
        rates = Follow(rates, others);
        if (const double here = Loss(all_, rates, gpu_); here < least) {
          least = here;
          best = rates;
          changed = true;
        }
      }
      rates_ = best;
    }
    return changed;
  }

  const GpuSpec& gpu_;
  std::vector<Coordinate> coordinates_;
  TritonRates rates_;
  TritonRates kept_;
  double least_shown_ = 0;
  std::vector<WeightedSample> samples_;
  std::vector<const WeightedSample*> all_;
  std::vector<std::vector<const WeightedSample*>> depending_;  // by coordinate
  std::vector<RateEvidence> evidence_;
};

double TimeError(const WorkloadLaunches& workload, const TritonRates& rates, const GpuSpec& gpu) {
  double predicted = 0;
  for (const LaunchSample& sample : workload.samples) {
    predicted += static_cast<double>(sample.count) * LaunchWorkSeconds(sample.work, rates, gpu);
  }
  return std::abs(predicted / workload.seconds - 1);
}

std::vector<const WorkloadLaunches*> WithLaunches(const std::vector<WorkloadLaunches>& workloads) {
  std::vector<const WorkloadLaunches*> some;
  for (const WorkloadLaunches& each : workloads) {
    if (!each.samples.empty()) {
      some.push_back(&each);
    }
  }
  return some;
}

double LeftOutError(const std::vector<const WorkloadLaunches*>& workloads, const GpuSpec& gpu) {
  double sum = 0;
  for (const WorkloadLaunches* left_out : workloads) {
    std::vector<const WorkloadLaunches*> others = workloads;
    std::erase(others, left_out);
    LaunchSearch search(others, gpu);
    search.Run();
    sum += TimeError(*left_out, search.rates(), gpu);
  }
  return sum / static_cast<double>(workloads.size());
}

}  // namespace

double TritonTimeError(const std::vector<WorkloadLaunches>& workloads,
                       const TritonRates& rates,
                       const GpuSpec& gpu) {
  double sum = 0;
  const auto some = WithLaunches(workloads);
  for (const WorkloadLaunches* workload : some) {
    sum += TimeError(*workload, rates, gpu);
  }
  return some.empty() ? 0 : sum / static_cast<double>(some.size());
}

LaunchFit FitLaunches(const std::vector<WorkloadLaunches>& workloads, const GpuSpec& gpu) {
  const auto some = WithLaunches(workloads);
  if (some.empty()) {
    throw Error("no launch of a Triton kernel to fit rates to");
  }
  LaunchSearch search(some, gpu);
  search.Run();
  LaunchFit fit{search.rates(), search.evidence(), TritonTimeError(workloads, search.rates(), gpu),
                std::nullopt};
  if (some.size() > 1) {
    fit.left_out_error = LeftOutError(some, gpu);
  }
  return fit;
}

}  // namespace dcsim::exec
