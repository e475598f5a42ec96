#include "exec/calibrate/collective_benchmark.h"

#include <algorithm>
#include <cmath>

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/calibrate/joint_spans.h"
#include "exec/communicator/peer_gather.h"
#include "exec/communicator/run_collective.h"
#include "exec/profiler/kernel_records.h"
#include "exec/profiler/percentile.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// A case, and how often it runs.
struct Case {
  Engine engine;
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
    cases.push_back({Engine::kNccl, static_cast<CollectiveKind>(kind), 1, sizes.unaligned,
                     RepeatsFor(sizes.unaligned), /*unaligned=*/true});
    for (Bytes payload = sizes.smallest; payload <= sizes.largest; payload = payload * 2) {
      cases.push_back(
          {Engine::kNccl, static_cast<CollectiveKind>(kind), 1, payload, RepeatsFor(payload)});
      for (const int calls : sizes.group_calls) {
        const bool enough = payload >= Bytes(std::int64_t{1024} * calls * ranks);
        if (enough && payload <= Bytes::GiB(1)) {
          cases.push_back({Engine::kNccl, static_cast<CollectiveKind>(kind), calls, payload,
                           RepeatsFor(payload)});
        }
      }
    }
  }
  for (Bytes payload = sizes.smallest; payload <= sizes.largest; payload = payload * 2) {
    cases.push_back(
        {Engine::kCopyEngine, CollectiveKind::kAllGather, 1, payload, RepeatsFor(payload)});
  }
  return cases;
}

/// Buffers large enough for every case, in bfloat16 elements.
struct Buffers {
  at::Tensor whole;
  at::Tensor shard;
  std::vector<at::Tensor> peers;  // every rank's shard
};

void Call(Communicator& communicator, const Case& what, const Buffers& buffers, int call) {
  constexpr std::int64_t kElementBytes = 2;
  constexpr std::int64_t kUnaligned = 2;  // elements
  const std::int64_t ranks = communicator.size();
  const std::int64_t elements = what.payload.count() / kElementBytes / what.calls / ranks * ranks;
  const std::int64_t first = what.unaligned ? kUnaligned : 0;
  const at::Tensor whole = buffers.whole.narrow(0, first + call * elements, elements);
  const at::Tensor shard = buffers.shard.narrow(0, call * (elements / ranks), elements / ranks);
  if (what.engine == Engine::kCopyEngine) {
    const PeerGather gather{buffers.peers, 0, elements / ranks, whole};
    return GatherFromPeers({&gather, 1}, communicator.rank());
  }
  RunCollective(communicator, what.kind, whole, shard);
}

/// One group after the other. A gather by copy engines is several copies, of which CUPTI does not
/// report all; so of such the times from event to event around each launch come back, in ns.
std::vector<std::int64_t> RunCase(Communicator& communicator,
                                  const Case& what,
                                  const Buffers& buffers) {
  std::vector<at::cuda::CUDAEvent> events;
  const auto record = [&] {
    if (what.engine == Engine::kCopyEngine) {
      events.emplace_back(cudaEventDefault);
      events.back().record();
    }
  };
  for (int i = 0; i < what.repeats; ++i) {
    record();
    communicator.StartGroup();
    for (int call = 0; call < what.calls; ++call) {
      Call(communicator, what, buffers, call);
    }
    communicator.EndGroup();
    record();
  }
  c10::cuda::device_synchronize();
  std::vector<std::int64_t> copies;
  for (std::size_t i = 0; i + 1 < events.size(); i += 2) {
    copies.push_back(
        std::llround(static_cast<double>(events[i].elapsed_time(events[i + 1])) * 1e6));
  }
  return copies;
}

/// Start, end, start, end, … of the case's kernels on this rank; copies start at 0.
std::vector<std::int64_t> SpansOf(const std::vector<KernelRecord>& records,
                                  const std::vector<std::int64_t>& copies) {
  std::vector<std::int64_t> spans;
  for (const std::int64_t time : copies) {
    spans.insert(spans.end(), {0, time});
  }
  for (std::size_t i = 0; copies.empty() && i < records.size(); ++i) {
    spans.push_back(static_cast<std::int64_t>(records[i].start_ns));
    spans.push_back(static_cast<std::int64_t>(records[i].end_ns));
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
    times.push_back(what.engine == Engine::kCopyEngine ? LongestTime(launch) : JointTime(launch));
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
  Buffers buffers{at::empty({elements}, options).zero_(),
                  at::empty({elements / communicator.size()}, options).zero_(),
                  {}};
  buffers.peers = communicator.OpenPeers(buffers.shard);
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true));
  c10::cuda::device_synchronize();
  const auto cases = Cases(sizes, communicator.size());
  KernelRecorder recorder;
  std::vector<CollectiveSample> samples;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rendezvous.Exchange("collective/ready/" + std::to_string(i), "");
    const auto copies = RunCase(communicator, cases[i], buffers);
    const auto records = recorder.Take();
    const auto spans =
        ExchangeNumbers(rendezvous, "collective/" + std::to_string(i), SpansOf(records, copies));
    const auto times = TimesOf(spans, cases[i]);
    CollectiveSample sample;
    sample.engine = cases[i].engine;
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
  communicator.ClosePeers(std::move(buffers.peers));
  return samples;
}

}  // namespace dcsim::exec
