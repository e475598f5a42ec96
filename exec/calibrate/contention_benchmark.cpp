#include "exec/calibrate/contention_benchmark.h"

#include <algorithm>

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include "exec/calibrate/compute_kernels.h"
#include "exec/calibrate/joint_spans.h"
#include "exec/calibrate/overlapped_run.h"
#include "exec/communicator/peer_gather.h"
#include "exec/communicator/run_collective.h"
#include "model/base/error.h"
#include "model/base/median.h"
#include "model/base/text.h"
#include "model/cost/multiprocessor_share.h"

namespace dcsim::exec {
namespace {

constexpr int kWarmup = 1;
constexpr int kRepeats = 8;
constexpr Bytes kLargest = Bytes::MiB(128);

class Benchmark {
 public:
  Benchmark(const std::vector<std::unique_ptr<Communicator>>& communicators, Rendezvous& rendezvous)
      : communicators_(communicators),
        rendezvous_(rendezvous),
        overlapped_(communicator()) {
    const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
    const std::int64_t elements = kLargest.count() / 2;
    whole_ = at::zeros({elements}, options);
    shard_ = at::zeros({elements / communicator().size()}, options);
    other_whole_ = at::zeros({elements}, options);
    other_shard_ = at::zeros({elements / communicator().size()}, options);
    peers_ = communicator().OpenPeers(shard_);
  }
  ~Benchmark() { communicator().ClosePeers(std::move(peers_)); }
  Benchmark(const Benchmark&) = delete;
  Benchmark& operator=(const Benchmark&) = delete;

  std::vector<ContentionSample> Run(const std::function<void(const std::string&)>& report) {
    const std::vector<SideWork> works = SideWorks();
    std::vector<Duration> alone;
    for (const SideWork& work : works) {
      alone.push_back(TimeAlone(work));
    }
    std::vector<ContentionSample> samples;
    for (const ComputeKernel& kernel : ComputeKernels()) {
      report("beside " + kernel.name);
      const std::int64_t period = PeriodAlone(kernel);
      for (std::size_t i = 0; i < works.size(); ++i) {
        samples.push_back(Beside(kernel, period, works[i], alone[i]));
        samples.back().beside_moving = MovingAlone(works, alone, works[i]);
      }
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      for (std::size_t j = 0; j < works.size(); ++j) {
        if (works[i].use == DeviceUse::kCollective && works[j].use == DeviceUse::kSideStreaming &&
            works[j].kernels == 1) {
          samples.push_back(BesideCopies(works[i], alone[i], works[j], alone[j]));
        }
      }
    }
    report("two communicators");
    samples.push_back(TwoCommunicators());
    return samples;
  }

 private:
  Communicator& communicator() { return *communicators_.front(); }

  at::Tensor Part(const at::Tensor& tensor, Bytes payload) const {
    return tensor.narrow(0, 0, tensor.numel() * payload.count() / kLargest.count());
  }

  SideWork Collective(CollectiveKind kind, Bytes payload) {
    const at::Tensor whole = Part(whole_, payload);
    const at::Tensor shard = Part(shard_, payload);
    const std::string name = std::string(CollectiveKindName(kind)) + " " + PrintBytes(payload);
    return {name, DeviceUse::kCollective,
            [this, kind, whole, shard] { RunCollective(communicator(), kind, whole, shard); },
            payload};
  }

  std::vector<SideWork> SideWorks() {
    std::vector<SideWork> works;
    for (const Bytes payload : {Bytes::MiB(16), Bytes::MiB(128)}) {
      for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
        works.push_back(Collective(static_cast<CollectiveKind>(kind), payload));
      }
    }
    works.push_back({"all_gather " + PrintBytes(kLargest) + " by copy engines",
                     DeviceUse::kCopyEngine,
                     [this] {
                       const PeerGather gather{peers_, 0, shard_.numel(), whole_};
                       GatherFromPeers({&gather, 1}, communicator().rank());
                     },
                     kLargest});
    for (const Bytes size : {Bytes::MiB(32), Bytes::MiB(128)}) {
      const at::Tensor from = Part(whole_, size);
      const at::Tensor to = Part(other_whole_, size);
      works.push_back({"copy " + PrintBytes(size), DeviceUse::kSideStreaming,
                       [from, to] { to.copy_(from, /*non_blocking=*/true); }, size});
      works.push_back(
          {"divide " + PrintBytes(size), DeviceUse::kSideStreaming, [to] { to.div_(2); }, size});
    }
    AddManyKernels(works);
    return works;
  }

  /// Copies and divisions of as many tensors, as of a model's gradients.
  void AddManyKernels(std::vector<SideWork>& works) {
    constexpr std::int64_t kTensors = 32;
    const std::vector<at::Tensor> from = whole_.chunk(kTensors);
    const std::vector<at::Tensor> to = other_whole_.chunk(kTensors);
    const std::string each =
        std::to_string(kTensors) + " x " + PrintBytes(Bytes(kLargest.count() / kTensors));
    const auto add = [&](const std::string& what, std::function<void()> run) {
      works.push_back(
          {what + " " + each, DeviceUse::kSideStreaming, std::move(run), kLargest, kTensors});
    };
    add("copy", [from, to] {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i].copy_(from[i], /*non_blocking=*/true);
      }
    });
    add("divide", [to] {
      for (const at::Tensor& tensor : to) {
        tensor.div_(2);
      }
    });
  }

  /// What one kernel takes alone that moves as much as many do; 0 of work that is one kernel.
  static Duration MovingAlone(const std::vector<SideWork>& works,
                              const std::vector<Duration>& alone,
                              const SideWork& many) {
    if (many.kernels == 1) {
      return Duration();
    }
    const auto one = std::ranges::find_if(works, [&](const SideWork& work) {
      return work.use == many.use && work.payload == many.payload && work.kernels == 1;
    });
    DCSIM_CHECK(one != works.end()) << "nothing moves as much as " << many.name;
    return alone[static_cast<std::size_t>(one - works.begin())];
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
  static ContentionSample SampleOf(const SideWork& work,
                                   Duration alone,
                                   const std::vector<std::int64_t>& times) {
    ContentionSample sample;
    sample.beside = work.name;
    sample.beside_use = work.use;
    sample.payload = work.payload;
    sample.kernels = work.kernels;
    sample.beside_alone = alone;
    sample.beside_time = Duration::FromNs(Median(times));
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    sample.beside_spread = static_cast<double>(*most - *least) / static_cast<double>(Median(times));
    return sample;
  }

  ContentionSample Beside(const ComputeKernel& kernel,
                          std::int64_t period,
                          const SideWork& work,
                          Duration alone) {
    const std::size_t count = OpsBeside(work, alone, period);
    std::vector<std::int64_t> lost;
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> delays;
    std::vector<std::int64_t> skews;
    std::vector<std::int64_t> first_delays;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans seen = overlapped_.Run(&kernel, count, &work);
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
    ContentionSample sample = SampleOf(work, alone, times);
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

  /// A collective beside copies of another side stream, back to back for longer than it takes.
  ContentionSample BesideCopies(const SideWork& collective,
                                Duration alone,
                                const SideWork& copy,
                                Duration copy_alone) {
    const auto count = static_cast<std::size_t>(4 * alone.ns() / copy_alone.ns()) + 3;
    std::vector<std::int64_t> times;
    std::vector<std::int64_t> copies;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const OverlappedSpans seen = overlapped_.RunBoth(collective, copy, count);
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
          copies.insert(copies.end(), numbers.begin() + 2, numbers.end());
        }
      }
      if (i >= kWarmup) {
        times.push_back(JointTime(ranks));
      }
    }
    ContentionSample sample = SampleOf(collective, alone, times);
    sample.compute = copy.name;
    sample.use = copy.use;
    sample.compute_alone = copy_alone;
    sample.compute_speed = copies.empty() ? 1 : static_cast<double>(copy_alone.ns()) / Mean(copies);
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
    const SideWork gather = Collective(CollectiveKind::kAllGather, kLargest);
    const SideWork scatter = {
        "reduce_scatter " + PrintBytes(kLargest), DeviceUse::kCollective,
        [this] { communicators_.back()->ReduceScatter(other_whole_, other_shard_); }};
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
      const OverlappedSpans own = overlapped_.RunBoth(gather, scatter);
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

  const std::vector<std::unique_ptr<Communicator>>& communicators_;
  Rendezvous& rendezvous_;
  OverlappedRun overlapped_;
  at::Tensor whole_;
  at::Tensor shard_;
  at::Tensor other_whole_;
  at::Tensor other_shard_;
  std::vector<at::Tensor> peers_;
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
