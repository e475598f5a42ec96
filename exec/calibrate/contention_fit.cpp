#include "exec/calibrate/contention_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <vector>

#include "exec/calibrate/fit_search.h"
#include "model/base/median.h"

namespace dcsim::exec {
namespace {

using Samples = std::span<const ContentionSample>;

double ProductSpeed(std::int64_t tiles, double lost, int multiprocessors) {
  const auto all = static_cast<double>(multiprocessors);
  return std::ceil(static_cast<double>(tiles) / all) /
         std::ceil(static_cast<double>(tiles) / (all - lost));
}

double StreamingSpeed(double ns, double fixed, double rate) {
  return ns / (ns + std::min(ns / 2, fixed + (1 - rate) * ns));
}

bool BesideCollective(const ContentionSample& sample) {
  return sample.beside_use == DeviceUse::kCollective;
}

/// At least one op ran from its start to its end beside the collective, so that what it lost is not
/// a matter of where the collective came.
bool TellsSpeed(const ContentionSample& sample) {
  return BesideCollective(sample) && sample.compute_speed > 0 &&
         sample.beside_time * 2 >= sample.compute_alone * 3;
}

double TrafficOf(const ContentionSample& sample, Bytes cache) {
  return MemoryTraffic(sample.moved, sample.compute_alone, cache);
}

/// The most that a kernel of the samples reaches.
double FullTraffic(Samples samples, Bytes cache) {
  double most = 0;
  for (const ContentionSample& sample : samples) {
    most = std::max(most, TrafficOf(sample, cache));
  }
  return most;
}

class Fit {
 public:
  Fit(Samples samples, const ContentionMachine& machine)
      : samples_(samples),
        machine_(machine),
        full_traffic_(FullTraffic(samples, machine.cache)) {
    fit_.contention.measured = true;
  }

  ContentionFit Run() {
    FitComputeRates();
    FitProducts();
    FitStreaming();
    FitSideRates();
    FitMany();
    FitCollectives();
    FitFirst();
    FitErrors();
    return fit_;
  }

 private:
  Rate& RateBeside(DeviceUse work, DeviceUse beside) {
    return fit_.contention.rates[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)];
  }

  std::vector<double> Of(DeviceUse use,
                         DeviceUse beside,
                         const std::function<double(const ContentionSample&)>& value) const {
    std::vector<double> values;
    for (const ContentionSample& sample : samples_) {
      if (sample.use == use && sample.beside_use == beside && !BesideMany(sample)) {
        values.push_back(value(sample));
      }
    }
    return values;
  }

  /// Whether collectives were timed beside copies of another side stream.
  bool HasCopies() const {
    return std::any_of(samples_.begin(), samples_.end(), [](const ContentionSample& s) {
      return BesideCollective(s) && s.use == DeviceUse::kSideStreaming;
    });
  }

  void FitComputeRates() {
    for (const DeviceUse use : {DeviceUse::kMatmul, DeviceUse::kAttention, DeviceUse::kStreaming}) {
      for (const DeviceUse beside :
           {DeviceUse::kSideStreaming, DeviceUse::kCollective, DeviceUse::kCopyEngine}) {
        RateBeside(use, beside) =
            RateOf(Mean(Of(use, beside, [](const auto& s) { return s.compute_speed; })));
      }
    }
  }

  /// A product of two waves or fewer takes twice as long whatever it loses: a persistent one's
  /// thread blocks are given their first two tiles beforehand.
  void FitProducts() {
    const int most = machine_.multiprocessors / 2;
    const std::int64_t given = 2 * std::int64_t{machine_.multiprocessors};
    const double lost = Least(1, most, 1, [&](double x) {
      double cost = 0;
      for (const ContentionSample& s : samples_) {
        if (TellsSpeed(s) && s.tiles > given) {
          cost += SquaredLog(ProductSpeed(s.tiles, x, machine_.multiprocessors), s.compute_speed);
        }
      }
      return cost;
    });
    fit_.contention.collective_multiprocessors = static_cast<int>(lost);
  }

  void FitStreaming() {
    const auto cost = [&](double fixed, double rate) {
      double sum = 0;
      for (const ContentionSample& s : samples_) {
        if (TellsSpeed(s) && s.use == DeviceUse::kStreaming) {
          const auto ns = static_cast<double>(s.compute_alone.ns());
          sum += SquaredLog(StreamingSpeed(ns, fixed, rate), s.compute_speed);
        }
      }
      return sum;
    };
    const auto best_fixed = [&](double rate) {
      return Least(0, 10'000, 250, [&](double fixed) { return cost(fixed, rate); });
    };
    const double rate = Least(0.5, 1, 0.01, [&](double x) { return cost(best_fixed(x), x); });
    RateBeside(DeviceUse::kStreaming, DeviceUse::kCollective) = RateOf(rate);
    fit_.contention.streaming_kernel =
        Duration::FromNs(static_cast<std::int64_t>(best_fixed(rate)));
  }

  void FitSideRates() {
    for (const DeviceUse use : {DeviceUse::kMatmul, DeviceUse::kAttention, DeviceUse::kStreaming}) {
      RateBeside(DeviceUse::kSideStreaming, use) =
          RateOf(Mean(Of(use, DeviceUse::kSideStreaming, [](const ContentionSample& s) {
            return s.beside_alone.seconds() / s.beside_time.seconds();
          })));
    }
  }

  void FitMany() {
    const auto many = FitSideKernels(samples_, machine_.multiprocessors);
    if (!many) {
      return;
    }
    fit_.many = many;
    fit_.contention.side_kernels = many->kernels;
    fit_.contention.copy_multiprocessors = many->copy_multiprocessors;
    RateBeside(DeviceUse::kMatmul, DeviceUse::kSideStreaming) = RateOf(many->product_speed);
    RateBeside(DeviceUse::kSideStreaming, DeviceUse::kMatmul) = RateOf(many->copy_rate);
  }

  /// Which is first where an op's end lets a collective start and another op.
  void FitFirst() {
    std::vector<double> first;
    std::vector<Duration> delays;
    for (const ContentionSample& s : samples_) {
      if (BesideCollective(s) && s.use != DeviceUse::kCollective &&
          s.use != DeviceUse::kSideStreaming) {
        first.push_back(s.first);
        if (s.first > 0) {
          delays.push_back(s.first_delay);
        }
      }
    }
    if (!delays.empty()) {
      fit_.first_delay = RangeOf(delays);
      fit_.contention.comes_first = Share::Nearest(Mean(first));
      fit_.contention.first_delay = Median(delays);
    }
  }

  /// How much the sample's compute, or copies, hold up collectives.
  double Load(const ContentionSample& sample) const {
    if (sample.use == DeviceUse::kSideStreaming) {
      return 1;
    }
    return full_traffic_ > 0 ? MemoryLoad(TrafficOf(sample, machine_.cache), full_traffic_) : 0;
  }

  /// Of collectives beside compute of that class, where they start so late and take so many times
  /// their time alone.
  template <typename Times>
  double Cost(DeviceUse use, double start, const Times& times) const {
    double sum = 0;
    for (const ContentionSample& s : samples_) {
      if (BesideCollective(s) && s.use == use) {
        sum += SquaredLog(start + static_cast<double>(s.beside_alone.ns()) * times(s),
                          static_cast<double>(s.beside_time.ns()));
      }
    }
    return sum;
  }

  /// What collectives that start so late take longer beside full traffic, by payload.
  BesideMemory::Table BestTable(double start) const {
    std::set<Bytes> payloads;
    for (const ContentionSample& s : samples_) {
      if (BesideCollective(s) && s.use == DeviceUse::kStreaming) {
        payloads.insert(s.payload);
      }
    }
    BesideMemory::Table table{
        machine_.ranks, Duration::FromNs(static_cast<std::int64_t>(start)), {}};
    for (const Bytes payload : payloads) {
      const double longer = Least(0, 5, 0.01, [&](double x) {
        return Cost(DeviceUse::kStreaming, start, [&](const ContentionSample& s) {
          return s.payload == payload ? 1 + x * Load(s) : 1;
        });
      });
      table.points.push_back({payload, Longer::Nearest(longer)});
    }
    return table;
  }

  /// What copies from other GPUs take longer beside full traffic.
  Longer BestOfReads() const {
    const double longer = Least(0, 5, 0.01, [&](double x) {
      double cost = 0;
      for (const ContentionSample& s : samples_) {
        if (s.use == DeviceUse::kStreaming && s.beside_use == DeviceUse::kCopyEngine) {
          cost += SquaredLog(s.beside_alone.seconds() * (1 + x * Load(s)), s.beside_time.seconds());
        }
      }
      return cost;
    });
    return Longer::Nearest(longer);
  }

  double TimesByMemory(const ContentionSample& s, const BesideMemory::Table& table) const {
    return 1 + table.At(s.payload).times() * Load(s);
  }

  /// time = start + alone * (1 + longer(payload) * load) beside streaming kernels and copies of
  /// another side stream, whose load is 1; = start + alone / rate beside products and attention.
  /// The start is that beside streaming kernels, which leave room at once (for others' room the
  /// model has laws of its own); where no sample tells what these move, common to the others.
  void FitCollectives() {
    const auto cost = [&](DeviceUse use, double start, double rate) {
      return Cost(use, start, [rate](const ContentionSample&) { return 1 / rate; });
    };
    const auto best_rate = [&](DeviceUse use, double start) {
      return Least(0.3, 1, 0.01, [&](double rate) { return cost(use, start, rate); });
    };
    constexpr std::array kByRate = {DeviceUse::kMatmul, DeviceUse::kAttention};
    const double start = Least(0, 30'000, 500, [&](double x) {
      if (full_traffic_ > 0) {
        const BesideMemory::Table table = BestTable(x);
        return Cost(DeviceUse::kStreaming, x,
                    [&](const ContentionSample& s) { return TimesByMemory(s, table); });
      }
      double sum = 0;
      for (const DeviceUse use : kByRate) {
        sum += cost(use, x, best_rate(use, x));
      }
      return sum;
    });
    fit_.contention.collective_start = Duration::FromNs(static_cast<std::int64_t>(start));
    for (const DeviceUse use : kByRate) {
      RateBeside(DeviceUse::kCollective, use) = RateOf(best_rate(use, start));
    }
    if (full_traffic_ > 0) {
      fit_.contention.beside_memory =
          BesideMemory{machine_.cache, {BestTable(start)}, BestOfReads()};
    }
    if (HasCopies()) {
      RateBeside(DeviceUse::kSideStreaming, DeviceUse::kCollective) =
          RateOf(Mean(Of(DeviceUse::kSideStreaming, DeviceUse::kCollective,
                         [](const ContentionSample& s) { return s.compute_speed; })));
    }
    if (HasCopies() && !fit_.contention.beside_memory) {
      RateBeside(DeviceUse::kCollective, DeviceUse::kSideStreaming) =
          RateOf(best_rate(DeviceUse::kSideStreaming, start));
    }
    RateBeside(DeviceUse::kCollective, DeviceUse::kCollective) = RateOf(
        Mean(Of(DeviceUse::kCollective, DeviceUse::kCollective, [](const ContentionSample& s) {
          return std::min(s.compute_speed, s.beside_alone.seconds() / s.beside_time.seconds());
        })));
  }

  double ComputeSpeed(const ContentionSample& s) {
    if (BesideCollective(s) && s.tiles > 0) {
      return ProductSpeed(s.tiles, fit_.contention.collective_multiprocessors,
                          machine_.multiprocessors);
    }
    const double rate = RateBeside(s.use, s.beside_use).share().number();
    if (BesideCollective(s) && s.use == DeviceUse::kStreaming) {
      return StreamingSpeed(static_cast<double>(s.compute_alone.ns()),
                            static_cast<double>(fit_.contention.streaming_kernel.ns()), rate);
    }
    return rate;
  }

  double SideTime(const ContentionSample& s) {
    const double alone = static_cast<double>(s.beside_alone.ns());
    const double start =
        BesideCollective(s) ? static_cast<double>(fit_.contention.collective_start.ns()) : 0;
    const double rate = RateBeside(s.beside_use, s.use).share().number();
    const auto& memory = fit_.contention.beside_memory;
    const bool moves = s.use == DeviceUse::kStreaming || s.use == DeviceUse::kSideStreaming;
    const double times =
        memory && moves && BesideCollective(s) ? TimesByMemory(s, memory->tables.front()) : 1;
    return start + alone / rate * times;
  }

  void FitErrors() {
    double compute = 0;
    double beside = 0;
    double count = 0;
    for (const ContentionSample& s : samples_) {
      if (s.use != DeviceUse::kCollective && TellsSpeed(s)) {
        compute += std::abs(ComputeSpeed(s) / s.compute_speed - 1);
        beside += std::abs(SideTime(s) / static_cast<double>(s.beside_time.ns()) - 1);
        count += 1;
      }
    }
    fit_.compute_error = count == 0 ? 0 : compute / count;
    fit_.beside_error = count == 0 ? 0 : beside / count;
  }

  Samples samples_;
  ContentionMachine machine_;
  double full_traffic_;
  ContentionFit fit_;
};

void AddSideStreams(const SideStreamsFit& fit, Contention& contention) {
  const auto add = [&](DeviceUse work, DeviceUse beside, const ShareRange& shares) {
    contention.rates[static_cast<std::size_t>(work)][static_cast<std::size_t>(beside)] =
        RateOf(shares.mean);
  };
  add(DeviceUse::kCollective, DeviceUse::kCopyEngine, fit.collective_beside_reads);
  add(DeviceUse::kCopyEngine, DeviceUse::kCollective, fit.reads_beside_collective);
  add(DeviceUse::kSideStreaming, DeviceUse::kCopyEngine, fit.copy_beside_reads);
  add(DeviceUse::kSideStreaming, DeviceUse::kSideStreaming, fit.copies_beside_copies);
  contention.to_host = RateOf(fit.to_host.mean);
  contention.crowded_kernel = fit.typical_crowded;
}

}  // namespace

ContentionFit FitContention(std::span<const ContentionSample> samples,
                            const ContentionMachine& machine) {
  std::vector<ContentionSample> beside_compute;
  std::ranges::remove_copy_if(samples, std::back_inserter(beside_compute), OfSideStreams);
  ContentionFit fit = Fit(beside_compute, machine).Run();
  fit.side_streams = FitSideStreams(samples, machine.ranks);
  AddSideStreams(fit.side_streams, fit.contention);
  return fit;
}

}  // namespace dcsim::exec
