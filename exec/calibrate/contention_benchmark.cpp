#include "exec/calibrate/contention_benchmark.h"

#include <algorithm>
#include <optional>

#include <ATen/cuda/CUDAContext.h>
#include <c10/core/InferenceMode.h>

#include "exec/calibrate/compute_kernels.h"
#include "exec/calibrate/joint_spans.h"
#include "exec/calibrate/overlapped_run.h"
#include "exec/calibrate/side_work.h"
#include "model/base/error.h"
#include "model/base/median.h"
#include "model/cost/multiprocessor_share.h"

namespace dcsim::exec {
namespace {

constexpr int kWarmup = 1;
constexpr int kRepeats = 8;

/// What a side stream did alone.
struct TimedWork {
  SideWork work;
  Duration alone;
};

bool IsCopy(const SideWork& work) {
  return work.use == DeviceUse::kSideStreaming && work.kernels == 1;
}

/// Whether the first is timed beside the second on another side stream: what plans bring together.
bool MeetOnSideStreams(const SideWork& first, const SideWork& second) {
  if (first.host != HostCopy::kNone || second.host != HostCopy::kNone) {
    return false;
  }
  switch (first.use) {
    case DeviceUse::kCollective:
      return IsCopy(second) || second.use == DeviceUse::kCopyEngine;
    case DeviceUse::kCopyEngine:
      return IsCopy(second) ||
             (second.use == DeviceUse::kCollective && second.payload == SideWorks::kLargest);
    default:
      return first.kernels > 1 ? second.kernels > 1 : second.use == DeviceUse::kCopyEngine;
  }
}

class Benchmark {
 public:
  Benchmark(const std::vector<std::unique_ptr<Communicator>>& communicators, Rendezvous& rendezvous)
      : rendezvous_(rendezvous),
        overlapped_(*communicators.front()),
        side_works_(communicators) {}

  std::vector<ContentionSample> Run(const std::function<void(const std::string&)>& report) {
    TimeWorks();
    for (const ComputeKernel& kernel : ComputeKernels()) {
      report("beside " + kernel.name);
      BesideCompute(kernel);
    }
    report("side streams");
    for (const TimedWork& first : works_) {
      for (const TimedWork& second : works_) {
        if (MeetOnSideStreams(first.work, second.work)) {
          samples_.push_back(BesideOther(first, second));
        }
      }
    }
    report("two communicators");
    samples_.push_back(TwoCommunicators());
    return std::move(samples_);
  }

 private:
  void TimeWorks() {
    for (const auto& works : {side_works_.Collectives(),
                              {side_works_.ReadPeers()},
                              side_works_.Copies(),
                              side_works_.ManyCopies(),
                              side_works_.HostCopies()}) {
      for (const SideWork& work : works) {
        works_.push_back({work, TimeAlone(work)});
      }
    }
  }

  /// Each work beside the kernel, and beside streaming kernels the largest collectives also while
  /// GPUs read each other's memory.
  void BesideCompute(const ComputeKernel& kernel) {
    const std::int64_t period = PeriodAlone(kernel);
    for (const TimedWork& timed : works_) {
      samples_.push_back(Beside(kernel, period, timed, nullptr));
    }
    const auto reads = std::ranges::find_if(works_, [](const TimedWork& timed) {
      return timed.work.use == DeviceUse::kCopyEngine && timed.work.host == HostCopy::kNone;
    });
    for (const TimedWork& timed : works_) {
      if (kernel.use == DeviceUse::kStreaming && timed.work.use == DeviceUse::kCollective &&
          timed.work.payload == SideWorks::kLargest) {
        samples_.push_back(Beside(kernel, period, timed, &*reads));
      }
    }
  }

  /// What one kernel takes alone that moves as much as many do; 0 of work that is one kernel.
  Duration MovingAlone(const SideWork& many) const {
    if (many.kernels == 1) {
      return Duration();
    }
    const auto one = std::ranges::find_if(works_, [&](const TimedWork& timed) {
      return IsCopy(timed.work) && timed.work.payload == many.payload;
    });
    DCSIM_CHECK(one != works_.end()) << "nothing moves as much as " << many.name;
    return one->alone;
  }

  /// Ops that run at least as long as the work beside them: of many kernels one for each op.
  static std::size_t OpsBeside(const SideWork& work, Duration alone, std::int64_t period) {
    constexpr std::size_t kMost = 260;
    const auto needed = static_cast<std::size_t>(alone.ns() * 5 / 2 / period) + 5;
    const std::size_t kernels = work.kernels > 1 ? static_cast<std::size_t>(work.kernels) : 0;
    return OverlappedRun::kOpsBefore + std::min(needed + kernels, kMost);
  }

  static std::int64_t TimeOf(const std::vector<Span>& ranks, DeviceUse use) {
    return use == DeviceUse::kCollective ? JointTime(ranks) : LongestTime(ranks);
  }

  /// What is lost depends on where in an op the other work comes, so the mean counts.
  static double Mean(const std::vector<std::int64_t>& values) {
    std::int64_t sum = 0;
    for (const std::int64_t value : values) {
      sum += value;
    }
    return static_cast<double>(sum) / static_cast<double>(values.size());
  }

  /// Numbers of every rank, by rank.
  std::vector<std::vector<std::int64_t>> Share(const std::vector<std::int64_t>& own) {
    return ExchangeNumbers(rendezvous_, "contention/" + std::to_string(exchanges_++), own);
  }

  Duration TimeAlone(const SideWork& work) {
    std::vector<std::int64_t> times;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const Span own = *overlapped_.Run(nullptr, 0, &work).side;
      std::vector<Span> ranks;
      for (const auto& numbers : Share({own.start, own.end})) {
        ranks.push_back({numbers.at(0), numbers.at(1)});
      }
      if (i >= kWarmup) {
        times.push_back(TimeOf(ranks, work.use));
      }
    }
    return Duration::FromNs(Median(times));
  }

  /// From an op's start to the next one's, nothing beside.
  std::int64_t PeriodAlone(const ComputeKernel& kernel) {
    constexpr std::size_t kOps = 20;
    std::vector<std::int64_t> periods;
    std::vector<std::int64_t> gaps;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans seen = overlapped_.Run(&kernel, kOps, nullptr);
      last_kernel_ = seen.last_kernel;
      gaps.push_back(GapBefore(seen));
      periods.push_back((seen.ops.back().start - seen.ops[OverlappedRun::kOpsBefore].start) /
                        static_cast<std::int64_t>(kOps - OverlappedRun::kOpsBefore - 1));
    }
    gap_alone_ = Median(gaps);
    return Median(periods);
  }

  /// From the end of the op that side work waits for to the next one's start.
  static std::int64_t GapBefore(const OverlappedSpans& seen) {
    return seen.ops[OverlappedRun::kOpsBefore].start - seen.ops[OverlappedRun::kOpsBefore - 1].end;
  }

  /// Of the side work's time beside compute on this rank, the share that compute lost, per mille.
  static std::int64_t LostPermille(const OverlappedSpans& seen, std::int64_t period) {
    const Span side = *seen.side;
    std::size_t first = 0;
    std::size_t last = seen.ops.size() - 1;
    for (std::size_t i = 0; i < seen.ops.size(); ++i) {
      first = seen.ops[i].start <= side.start ? i : first;
      last = seen.ops[i].start >= side.end ? std::min(last, i) : last;
    }
    const std::int64_t took = seen.ops[last].start - seen.ops[first].start;
    const std::int64_t lost = took - static_cast<std::int64_t>(last - first) * period;
    const std::int64_t overlapped = std::min(side.end, seen.ops[last].start) - side.start;
    return lost * 1000 / std::max<std::int64_t>(1, overlapped);
  }

  /// What `times`, one a repeat, say of work beside another.
  ContentionSample SampleOf(const TimedWork& timed, const std::vector<std::int64_t>& times) const {
    const SideWork& work = timed.work;
    ContentionSample sample;
    sample.beside = work.name;
    sample.beside_use = work.use;
    sample.host = work.host;
    sample.payload = work.payload;
    sample.kernels = work.kernels;
    sample.beside_moving = MovingAlone(work);
    sample.beside_alone = timed.alone;
    sample.beside_time = Duration::FromNs(Median(times));
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    sample.beside_spread = static_cast<double>(*most - *least) / static_cast<double>(Median(times));
    return sample;
  }

  /// `meanwhile` runs on a third stream for longer than the side work takes.
  ContentionSample Beside(const ComputeKernel& kernel,
                          std::int64_t period,
                          const TimedWork& timed,
                          const TimedWork* meanwhile) {
    const SideWork& work = timed.work;
    const std::size_t count = OpsBeside(work, timed.alone, period);
    std::optional<OverlappedRun::Repeated> repeated;
    if (meanwhile != nullptr) {
      repeated.emplace(meanwhile->work, TimesBeside(timed, *meanwhile));
    }
    std::vector<std::int64_t> lost;
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> delays;
    std::vector<std::int64_t> skews;
    std::vector<std::int64_t> first_delays;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans seen = overlapped_.Run(&kernel, count, &work, repeated);
      const std::int64_t delay = seen.side->start - seen.ops[OverlappedRun::kOpsBefore - 1].end;
      const std::int64_t gap = GapBefore(seen);
      const auto all =
          Share({seen.side->start, seen.side->end, delay, LostPermille(seen, period), gap});
      if (i < kWarmup) {
        continue;
      }
      std::vector<Span> ranks;
      for (const auto& numbers : all) {
        ranks.push_back({numbers.at(0), numbers.at(1)});
        delays.push_back(numbers.at(2));
        lost.push_back(numbers.at(3));
        if (delays.back() < numbers.at(4)) {
          first_delays.push_back(numbers.at(4) - gap_alone_);
        }
      }
      skews.push_back(Skew(ranks));
      times.push_back(TimeOf(ranks, work.use));
    }
    ContentionSample sample = SampleOf(timed, times);
    sample.peers_read = meanwhile != nullptr;
    sample.compute = kernel.name;
    sample.use = kernel.use;
    sample.tiles = Tiles(kernel);
    sample.moved = kernel.moved;
    sample.compute_alone = Duration::FromNs(period);
    sample.compute_speed = 1 - Mean(lost) / 1000;
    sample.start_delay = Duration::FromNs(Median(delays));
    sample.skew = Duration::FromNs(Median(skews));
    if (!first_delays.empty()) {
      sample.first = static_cast<double>(first_delays.size()) / static_cast<double>(delays.size());
      sample.first_delay = Duration::FromNs(Median(first_delays));
    }
    return sample;
  }

  /// How often work has to be repeated to go on for longer than the other one takes beside it.
  static std::size_t TimesBeside(const TimedWork& timed, const TimedWork& repeated) {
    return static_cast<std::size_t>(4 * timed.alone.ns() / repeated.alone.ns()) + 3;
  }

  /// Work of a side stream beside another side stream's, back to back.
  ContentionSample BesideOther(const TimedWork& first, const TimedWork& second) {
    const OverlappedRun::Repeated repeated{second.work, TimesBeside(first, second)};
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> others;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans seen = overlapped_.RunBoth(first.work, repeated);
      std::vector<std::int64_t> own = {seen.side->start, seen.side->end};
      for (const Span& op : seen.ops) {
        if (op.start >= seen.side->start && op.end <= seen.side->end) {
          own.push_back(op.time());
        }
      }
      std::vector<Span> ranks;
      for (const auto& numbers : Share(own)) {
        ranks.push_back({numbers.at(0), numbers.at(1)});
        if (i >= kWarmup) {
          others.insert(others.end(), numbers.begin() + 2, numbers.end());
        }
      }
      if (i >= kWarmup) {
        times.push_back(TimeOf(ranks, first.work.use));
      }
    }
    ContentionSample sample = SampleOf(first, times);
    sample.compute = second.work.name;
    sample.use = second.work.use;
    sample.compute_alone = second.alone;
    sample.compute_speed =
        others.empty() ? 1 : static_cast<double>(second.alone.ns()) / Mean(others);
    return sample;
  }

  std::int64_t Tiles(const ComputeKernel& kernel) const {
    if (kernel.use != DeviceUse::kMatmul) {
      return 0;
    }
    if (last_kernel_.ctas != at::cuda::getCurrentDeviceProperties()->multiProcessorCount) {
      return last_kernel_.ctas;
    }
    const auto tile = TileElements(last_kernel_.name);
    return tile ? (kernel.output_elements + *tile - 1) / *tile : 0;
  }

  /// A reduce-scatter on the second communicator beside an all-gather on the first.
  ContentionSample TwoCommunicators() {
    const SideWork gather = side_works_.Collective(CollectiveKind::kAllGather, SideWorks::kLargest);
    const SideWork scatter = side_works_.OtherReduceScatter();
    ContentionSample sample;
    sample.compute = scatter.name;
    sample.use = DeviceUse::kCollective;
    sample.compute_alone = TimeAlone(scatter);
    sample.beside = gather.name;
    sample.beside_use = DeviceUse::kCollective;
    sample.beside_alone = TimeAlone(gather);
    std::vector<std::int64_t> gathers;
    std::vector<std::int64_t> scatters;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans own = overlapped_.RunBoth(gather, {scatter});
      std::vector<Span> gather_spans;
      std::vector<Span> scatter_spans;
      for (const auto& numbers :
           Share({own.side->start, own.side->end, own.ops[0].start, own.ops[0].end})) {
        gather_spans.push_back({numbers.at(0), numbers.at(1)});
        scatter_spans.push_back({numbers.at(2), numbers.at(3)});
      }
      gathers.push_back(JointTime(gather_spans));
      scatters.push_back(JointTime(scatter_spans));
    }
    sample.beside_time = Duration::FromNs(Median(gathers));
    sample.compute_speed =
        sample.compute_alone.seconds() / (static_cast<double>(Median(scatters)) / 1e9);
    return sample;
  }

  Rendezvous& rendezvous_;
  OverlappedRun overlapped_;
  SideWorks side_works_;
  std::vector<TimedWork> works_;
  std::vector<ContentionSample> samples_;
  KernelRecord last_kernel_;    // of the op that was timed alone last
  std::int64_t gap_alone_ = 0;  // before that op
  int exchanges_ = 0;
};

}  // namespace

std::vector<ContentionSample> BenchmarkContention(
    const std::vector<std::unique_ptr<Communicator>>& communicators,
    Rendezvous& rendezvous,
    const std::function<void(const std::string&)>& report) {
  const c10::InferenceMode inference;
  return Benchmark(communicators, rendezvous).Run(report);
}

}  // namespace dcsim::exec
