#include "exec/calibrate/collective_benchmark.h"

#include <algorithm>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/joint_spans.h"
#include "exec/communicator/run_collective.h"
#include "exec/profiler/kernel_records.h"
#include "exec/profiler/percentile.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// A case, and how often it runs.
struct Case {
  CollectiveKind kind;
  int calls;
  Bytes payload;
  int repeats;
  bool unaligned = false;
};

int RepeatsFor(Bytes payload) {
  return payload < Bytes::MiB(64) ? 20 : 7;
}

std::vector<Case> Cases(const CollectiveSizes& sizes, int ranks) {
  std::vector<Case> cases;
  for (std::size_t kind = 0; kind < CollectiveKindNames().size(); ++kind) {
    cases.push_back({static_cast<CollectiveKind>(kind), 1, sizes.unaligned,
                     RepeatsFor(sizes.unaligned), /*unaligned=*/true});
    for (Bytes payload = sizes.smallest; payload <= sizes.largest; payload = payload * 2) {
      cases.push_back({static_cast<CollectiveKind>(kind), 1, payload, RepeatsFor(payload)});
      for (const int calls : sizes.group_calls) {
        const bool enough = payload >= Bytes(std::int64_t{1024} * calls * ranks);
        if (enough && payload <= Bytes::GiB(1)) {
          cases.push_back({static_cast<CollectiveKind>(kind), calls, payload, RepeatsFor(payload)});
        }
      }
    }
  }
  return cases;
}

/// Buffers large enough for every case, in bfloat16 elements.
struct Buffers {
  at::Tensor whole;
  at::Tensor shard;
};

void Call(Communicator& communicator, const Case& what, const Buffers& buffers, int call) {
  constexpr std::int64_t kElementBytes = 2;
  constexpr std::int64_t kUnaligned = 2;  // elements
  const std::int64_t ranks = communicator.size();
  const std::int64_t elements = what.payload.count() / kElementBytes / what.calls / ranks * ranks;
  const std::int64_t first = what.unaligned ? kUnaligned : 0;
  const at::Tensor whole = buffers.whole.narrow(0, first + call * elements, elements);
  const at::Tensor shard = buffers.shard.narrow(0, call * (elements / ranks), elements / ranks);
  RunCollective(communicator, what.kind, whole, shard);
}

/// One group after the other.
void RunCase(Communicator& communicator, const Case& what, const Buffers& buffers) {
  for (int i = 0; i < what.repeats; ++i) {
    communicator.StartGroup();
    for (int call = 0; call < what.calls; ++call) {
      Call(communicator, what, buffers, call);
    }
    communicator.EndGroup();
  }
  c10::cuda::device_synchronize();
}

/// Start, end, start, end, … of the case's kernels on this rank.
std::vector<std::int64_t> SpansOf(const std::vector<KernelRecord>& records) {
  std::vector<std::int64_t> spans;
  for (const KernelRecord& record : records) {
    spans.push_back(static_cast<std::int64_t>(record.start_ns));
    spans.push_back(static_cast<std::int64_t>(record.end_ns));
  }
  return spans;
}

/// Of each launch, from the ranks' spans; the first two launches warm up.
std::vector<std::int64_t> TimesOf(const std::vector<std::vector<std::int64_t>>& ranks,
                                  const Case& what) {
  constexpr std::size_t kWarmup = 2;
  std::size_t launches = SIZE_MAX;
  for (const auto& spans : ranks) {
    launches = std::min(launches, spans.size() / 2);
  }
  DCSIM_CHECK(launches >= static_cast<std::size_t>(what.repeats)) << "kernel records are missing";
  std::vector<std::int64_t> times;
  for (std::size_t i = kWarmup; i < launches; ++i) {
    std::vector<Span> launch;
    for (const auto& spans : ranks) {
      launch.push_back({spans[2 * i], spans[2 * i + 1]});
    }
    times.push_back(JointTime(launch));
  }
  return times;
}

}  // namespace

std::vector<CollectiveSample> BenchmarkCollectives(
    Communicator& communicator,
    Rendezvous& rendezvous,
    const CollectiveSizes& sizes,
    const std::function<void(const std::string&)>& report) {
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(at::kCUDA);
  const std::int64_t elements = sizes.largest.count() / 2;
  const Buffers buffers{at::empty({elements}, options).zero_(),
                        at::empty({elements / communicator.size()}, options).zero_()};
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
  c10::cuda::device_synchronize();
  const auto cases = Cases(sizes, communicator.size());
  KernelRecorder recorder;
  std::vector<CollectiveSample> samples;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rendezvous.Exchange("collective/ready/" + std::to_string(i), "");
    RunCase(communicator, cases[i], buffers);
    const auto records = recorder.Take();
    const auto spans =
        ExchangeNumbers(rendezvous, "collective/" + std::to_string(i), SpansOf(records));
    const auto times = TimesOf(spans, cases[i]);
    CollectiveSample sample;
    sample.kind = cases[i].kind;
    sample.calls = cases[i].calls;
    sample.unaligned = cases[i].unaligned;
    sample.payload = cases[i].payload;
    sample.time = Duration::FromNs(Percentile(times, 50));
    sample.spread = Duration::FromNs(Percentile(times, 90) - Percentile(times, 10));
    sample.ctas = records.empty() ? 0 : records.back().ctas;
    samples.push_back(sample);
    if (i % 20 == 0) {
      report("collectives: " + std::to_string(i) + " of " + std::to_string(cases.size()));
    }
  }
  return samples;
}

}  // namespace dcsim::exec
