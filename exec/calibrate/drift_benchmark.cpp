#include "exec/calibrate/drift_benchmark.h"

#include <algorithm>
#include <string>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>

#include "exec/calibrate/joint_spans.h"
#include "exec/profiler/kernel_records.h"
#include "model/base/error.h"
#include "model/base/median.h"

namespace dcsim::exec {
namespace {

constexpr int kWarmup = 1;
constexpr int kRepeats = 12;
constexpr int kSecondsOfLoad = 2;
constexpr int kProductsASecond = 600;  // of 8192 x 8192 x 8192, about

class DriftBenchmark {
 public:
  DriftBenchmark(Communicator& communicator, Rendezvous& rendezvous)
      : communicator_(communicator),
        rendezvous_(rendezvous) {
    constexpr std::int64_t kSide = 8192;
    const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
    factor_ = at::randn({kSide, kSide}, options);
    product_ = at::empty_like(factor_);
    signal_ = at::zeros({64}, options);
  }

  std::vector<DriftSample> Run() {
    Load(kSecondsOfLoad * kProductsASecond);
    c10::cuda::device_synchronize();
    recorder_.Take();
    std::vector<DriftSample> samples;
    for (const int products : {0, 1, 2, 4, 8}) {
      samples.push_back(After(products));
    }
    return samples;
  }

 private:
  static constexpr std::uint64_t kMeet = 1;
  static constexpr std::uint64_t kNext = 2;

  void Load(int products) {
    for (int i = 0; i < products; ++i) {
      at::mm_out(product_, factor_, factor_);
    }
  }

  void Meet(std::uint64_t label) {
    const KernelRecorder::Label labelled(label);
    communicator_.AllReduce(signal_);
  }

  /// Of one run on this rank: the end of the collective that brings ranks together, and the start
  /// of the next one.
  Span RunOnce(int products) {
    constexpr int kInFront = 20;  // while the host issues what follows
    Load(kInFront);
    Meet(kMeet);
    Load(products);
    Meet(kNext);
    c10::cuda::device_synchronize();
    Span span;
    for (const KernelRecord& record : recorder_.Take()) {
      span.start = record.label == kMeet ? static_cast<std::int64_t>(record.end_ns) : span.start;
      span.end = record.label == kNext ? static_cast<std::int64_t>(record.start_ns) : span.end;
    }
    DCSIM_CHECK(span.start > 0 && span.end > 0) << "kernel records of collectives are missing";
    return span;
  }

  DriftSample After(int products) {
    std::vector<std::int64_t> since;
    std::vector<std::int64_t> apart;
    for (int i = 0; i < kWarmup + kRepeats; ++i) {
      const Span own = RunOnce(products);
      const auto ranks = ExchangeNumbers(rendezvous_, "drift/" + std::to_string(exchanges_++),
                                         {own.time(), own.end});
      if (i < kWarmup) {
        continue;
      }
      std::vector<Span> next;
      std::int64_t sum = 0;
      for (const auto& numbers : ranks) {
        sum += numbers.at(0);
        next.push_back({numbers.at(1), numbers.at(1)});
      }
      apart.push_back(Skew(next));
      since.push_back(sum / static_cast<std::int64_t>(ranks.size()));
    }
    const auto [least, most] = std::minmax_element(apart.begin(), apart.end());
    return {Duration::FromNs(Median(since)), Duration::FromNs(Median(apart)),
            Duration::FromNs(*least), Duration::FromNs(*most)};
  }

  Communicator& communicator_;
  Rendezvous& rendezvous_;
  at::Tensor factor_;
  at::Tensor product_;
  at::Tensor signal_;
  KernelRecorder recorder_;
  int exchanges_ = 0;
};

}  // namespace

std::vector<DriftSample> BenchmarkDrift(Communicator& communicator, Rendezvous& rendezvous) {
  const c10::InferenceMode inference;
  return DriftBenchmark(communicator, rendezvous).Run();
}

}  // namespace dcsim::exec
