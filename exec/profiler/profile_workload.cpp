#include "exec/profiler/profile_workload.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>

#include "exec/device/event_time.h"
#include "exec/device/power_meter.h"
#include "exec/interpreter/graph_runner.h"
#include "exec/profiler/busy_by_op.h"
#include "exec/profiler/footprint_recorder.h"
#include "exec/profiler/kernel_records.h"
#include "exec/profiler/percentile.h"
#include "exec/profiler/sign_descent.h"
#include "exec/reference/reference_data.h"
#include "model/graph/laid_out_profile.h"
#include "model/graph/param_layout.h"
#include "model/graph/param_shifts.h"
#include "model/graph/sharding.h"

namespace dcsim::exec {
namespace {

using Clock = std::chrono::steady_clock;

/// Host time of each op's call. Waits for the GPU now and then: a full launch queue would block.
class HostTimer : public OpListener {
 public:
  explicit HostTimer(std::size_t ops) : times_(ops) {}

  void BeforeOp(OpId id) override {
    constexpr std::size_t kOpsBetweenWaits = 200;
    if (id.index() % kOpsBetweenWaits == 0) {
      c10::cuda::device_synchronize();
    }
    start_ = Clock::now();
  }
  void AfterOp(OpId id, const Frame&) override {
    const auto passed = Clock::now() - start_;
    times_[id.index()].push_back(std::chrono::nanoseconds(passed).count());
  }
  const std::vector<std::vector<std::int64_t>>& times() const { return times_; }

 private:
  Clock::time_point start_;
  std::vector<std::vector<std::int64_t>> times_;
};

/// Marks every launch with its step and op.
class OpLabels : public OpListener {
 public:
  explicit OpLabels(std::size_t ops) : ops_(ops) {}

  void StartStep(std::size_t step) { first_ = step * ops_; }
  void BeforeOp(OpId id) override { label_.emplace(first_ + id.index()); }
  void AfterOp(OpId, const Frame&) override { label_.reset(); }

 private:
  std::size_t ops_;
  std::size_t first_ = 0;
  std::optional<KernelRecorder::Label> label_;
};

/// A workload on the GPU, ready to run.
struct Subject {
  Subject(const Graph& graph, const ProfileSettings& settings)
      : device(c10::kCUDA, c10::cuda::current_device()),
        params(MakeParams(graph, settings.seed)),
        runner(graph, device, params, settings.binaries) {}

  std::vector<at::Tensor> MakeParams(const Graph& graph, std::uint64_t seed) const {
    std::vector<at::Tensor> made;
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      const ParamId id(i);
      made.push_back(ReferenceParam(graph, id, seed, 0, graph.numel(id), device)
                         .view(graph.value(graph.param(id).value).shape));
    }
    return made;
  }
  /// Inputs of the reference training's step.
  void TakeInputs(const Graph& graph, std::uint64_t seed, int step) {
    inputs = ReferenceInputs(graph, seed, MicroStepPlace(0, step, 0), device);
  }
  void Run(OpListener* listener) {
    runner.Listen(listener);
    runner.Run(inputs, 1.0, /*keep_gradients=*/false);
    runner.Listen(nullptr);
  }

  c10::Device device;
  std::vector<at::Tensor> params;
  std::vector<at::Tensor> inputs;
  GraphRunner runner;
};

/// Puts the parameters where ZeRO-1 and 2 keep them, each group in one tensor.
void LayOutSideBySide(Subject& subject, const Graph& graph) {
  const ParamLayout layout(graph, SideBySideOptions(), 1);
  std::vector<at::Tensor> flat(layout.groups().size());
  for (std::size_t i = 0; i < subject.params.size(); ++i) {
    const ParamPlace& place = layout.place(ParamId(i));
    at::Tensor& param = subject.params[i];
    at::Tensor& weights = flat[place.group];
    if (!weights.defined()) {
      weights = param.new_empty({layout.weights(place.group)});
    }
    at::Tensor there = weights.narrow(0, place.weights, place.numel).view(param.sizes());
    there.copy_(param);
    param = std::move(there);
  }
}

/// Leaves the subject with the inputs of the step behind the trained ones.
void Train(Subject& subject, const Graph& graph, const ProfileSettings& settings) {
  SignDescent descent(graph, subject.params, settings.learning_rate);
  for (int step = 0; step < settings.trained_steps; ++step) {
    subject.TakeInputs(graph, settings.seed, step);
    subject.Run(&descent);
  }
  subject.TakeInputs(graph, settings.seed, settings.trained_steps);
}

/// What the kernel records of all profiled steps say about each op.
struct KernelTimes {
  std::vector<std::vector<std::int64_t>> by_op;                   // busy, one a step
  std::vector<std::vector<KernelRecord>> kernels;                 // of the last step, by op
  std::vector<std::vector<std::vector<std::int64_t>>> by_kernel;  // op, position, step
  std::vector<std::int64_t> gaps;  // between neighbours on the stream, ns
  double sm_clock_mhz = 0;         // meanwhile; 0 where it was not read
};

/// Adds one step's records, labelled with their ops.
void AddStep(const std::vector<KernelRecord>& records, KernelTimes& times) {
  for (auto& kernels : times.kernels) {
    kernels.clear();
  }
  const std::vector<std::int64_t> busy = BusyByOp(records, times.by_op.size());
  std::uint64_t before = 0;
  for (const KernelRecord& record : records) {
    const auto ns = static_cast<std::int64_t>(record.end_ns - record.start_ns);
    auto& kernels = times.kernels[record.label];
    auto& by_kernel = times.by_kernel[record.label];
    by_kernel.resize(std::max(by_kernel.size(), kernels.size() + 1));
    by_kernel[kernels.size()].push_back(ns);
    kernels.push_back(record);
    if (before != 0 && record.start_ns >= before) {
      times.gaps.push_back(static_cast<std::int64_t>(record.start_ns - before));
    }
    before = record.end_ns;
  }
  for (std::size_t op = 0; op < busy.size(); ++op) {
    times.by_op[op].push_back(busy[op]);
  }
}

/// Steps one behind another, so that the clock is what it is in training: a GPU at its power limit
/// takes some 100 ms to find it.
KernelTimes RecordKernels(Subject& subject,
                          std::size_t ops,
                          int warmup_steps,
                          const ProfileSettings& settings) {
  KernelTimes times;
  times.by_op.resize(ops);
  times.kernels.resize(ops);
  times.by_kernel.resize(ops);
  KernelRecorder recorder;
  OpLabels labels(ops);
  PowerMeter meter(subject.device.index());
  settings.report("recording kernels of " + std::to_string(settings.steps) + " steps");
  const int steps = warmup_steps + settings.steps;
  for (int step = 0; step < steps; ++step) {
    if (step == warmup_steps) {
      meter.Start();
    }
    labels.StartStep(static_cast<std::size_t>(step));
    subject.Run(&labels);
  }
  c10::cuda::device_synchronize();
  if (const auto reading = meter.Stop()) {
    times.sm_clock_mhz = reading->sm_clock_mhz;
  }
  std::vector<std::vector<KernelRecord>> by_step(static_cast<std::size_t>(steps));
  for (KernelRecord& record : recorder.Take()) {
    if (record.label != KernelRecord::kNoLabel) {
      const std::size_t step = record.label / ops;
      record.label %= ops;
      by_step[step].push_back(std::move(record));
    }
  }
  for (std::size_t step = static_cast<std::size_t>(warmup_steps); step < by_step.size(); ++step) {
    AddStep(by_step[step], times);
  }
  return times;
}

/// How many steps fill a second, in which the clock settles; at most 100.
int StepsToSettle(Subject& subject) {
  constexpr auto kTime = std::chrono::seconds(1);
  constexpr int kMost = 100;
  c10::cuda::device_synchronize();
  const auto start = Clock::now();
  int steps = 0;
  for (; steps < kMost && Clock::now() - start < kTime; ++steps) {
    subject.Run(nullptr);
    c10::cuda::device_synchronize();
  }
  return steps;
}

/// Mean time of steps that nothing watches, one behind another.
std::int64_t TimeSteps(Subject& subject, int warmup_steps, int steps) {
  for (int step = 0; step < warmup_steps; ++step) {
    subject.Run(nullptr);
  }
  at::cuda::CUDAEvent begin(cudaEventDefault);
  at::cuda::CUDAEvent end(cudaEventDefault);
  begin.record();
  for (int step = 0; step < steps; ++step) {
    subject.Run(nullptr);
  }
  end.record();
  c10::cuda::device_synchronize();
  return TimeBetween(begin, end).ns() / steps;
}

Duration KernelGap(const KernelTimes& times, std::int64_t step_ns, std::int64_t host_calls_ns) {
  std::int64_t busy = 0;
  std::int64_t count = 0;
  for (std::size_t op = 0; op < times.by_op.size(); ++op) {
    busy += Percentile(times.by_op[op], 50);
    count += static_cast<std::int64_t>(times.kernels[op].size());
  }
  const bool host_bound = host_calls_ns * 10 > step_ns * 9;
  if (host_bound || count == 0) {
    return Duration::FromNs(Percentile(times.gaps, 50));
  }
  return Duration::FromNs(std::max<std::int64_t>(0, (step_ns - busy) / count));
}

/// Kernels are listed once each, however many ops launch alike ones. Of one name and grid some go
/// through much more than others: those that differ by more than a quarter are not alike.
std::uint32_t Intern(Profile& profile,
                     std::map<std::string, std::uint32_t>& known,
                     const KernelRecord& record,
                     std::int64_t median_ns) {
  Kernel kernel;
  kernel.name = record.name;
  kernel.device_time = Duration::FromNs(median_ns);
  kernel.ctas = record.ctas;
  kernel.threads = record.threads;
  kernel.shared_memory = Bytes(record.shared_memory);
  const double quarters =
      std::log(static_cast<double>(std::max<std::int64_t>(1, median_ns))) / std::log(1.25);
  const std::string key =
      kernel.name + "/" + std::to_string(kernel.ctas) + "/" + std::to_string(kernel.threads) + "/" +
      std::to_string(record.shared_memory) + "/" + std::to_string(std::lround(quarters));
  const auto [entry, added] =
      known.emplace(key, static_cast<std::uint32_t>(profile.kernels.size()));
  if (added) {
    profile.kernels.push_back(std::move(kernel));
  }
  return entry->second;
}

/// What is measured of each op of a subject.
struct OpReadings {
  KernelTimes kernels;
  std::vector<std::vector<std::int64_t>> host;         // by op, one a step
  std::vector<std::vector<FootprintStep>> footprints;  // by op
};

/// Lists kernels of ops, and what the ops take.
class ProfileWriter {
 public:
  explicit ProfileWriter(Profile& profile) : profile_(profile) {}

  OpProfile EntryOf(OpId id, const OpReadings& readings) {
    const std::size_t i = id.index();
    const KernelTimes& times = readings.kernels;
    OpProfile entry;
    entry.op = id;
    entry.device_time = Duration::FromNs(Percentile(times.by_op[i], 50));
    entry.device_time_spread =
        Duration::FromNs(Percentile(times.by_op[i], 90) - Percentile(times.by_op[i], 10));
    entry.host_time = Duration::FromNs(Percentile(readings.host[i], 50));
    for (std::size_t k = 0; k < times.kernels[i].size(); ++k) {
      entry.kernels.push_back(
          Intern(profile_, known_, times.kernels[i][k], Percentile(times.by_kernel[i][k], 50)));
    }
    entry.footprint = readings.footprints[i];
    return entry;
  }

 private:
  Profile& profile_;
  std::map<std::string, std::uint32_t> known_;
};

OpReadings ReadOps(Subject& subject,
                   const Graph& graph,
                   int settling,
                   const ProfileSettings& settings) {
  FootprintRecorder footprints(graph);
  subject.Run(&footprints);
  HostTimer host(graph.ops.size());
  for (int i = 0; i < settings.steps; ++i) {
    subject.Run(&host);
  }
  return {RecordKernels(subject, graph.ops.size(), settling, settings), host.times(),
          footprints.footprints()};
}

/// Ops that read a parameter which is shifted where ZeRO-1 and 2 keep it.
std::vector<OpId> ShiftedOps(const Graph& graph) {
  const ParamShifts shifts(graph, SideBySideOptions(), 1);
  std::vector<OpId> ops;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (shifts.AlignmentOf(OpId(i)) < kTensorAlignment) {
      ops.emplace_back(i);
    }
  }
  return ops;
}

}  // namespace

Profile ProfileWorkload(const Graph& graph, const ProfileSettings& settings) {
  settings.report("building weights");
  Subject subject(graph, settings);
  settings.report("training");
  Train(subject, graph, settings);
  settings.report("warming up");
  for (int step = 0; step < settings.warmup_steps; ++step) {
    subject.Run(nullptr);
  }
  settings.report("timing steps");
  const int settling = StepsToSettle(subject);
  const std::int64_t step_ns = TimeSteps(subject, settling, settings.steps);
  const OpReadings readings = ReadOps(subject, graph, settling, settings);
  Profile profile;
  profile.graph_hash = graph.hash;
  profile.steps = settings.steps;
  profile.trained_steps = settings.trained_steps;
  ProfileWriter writer(profile);
  std::int64_t host_calls = 0;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    profile.ops.push_back(writer.EntryOf(OpId(i), readings));
    host_calls += profile.ops.back().host_time.ns();
  }
  profile.kernel_gap = KernelGap(readings.kernels, step_ns, host_calls);
  profile.step_time = Duration::FromNs(step_ns);
  profile.sm_clock_mhz = readings.kernels.sm_clock_mhz;
  if (const std::vector<OpId> shifted = ShiftedOps(graph); !shifted.empty()) {
    settings.report("laying parameters side by side");
    LayOutSideBySide(subject, graph);
    const OpReadings there = ReadOps(subject, graph, StepsToSettle(subject), settings);
    std::transform(shifted.begin(), shifted.end(), std::back_inserter(profile.side_by_side),
                   [&](OpId id) { return writer.EntryOf(id, there); });
  }
  return profile;
}

}  // namespace dcsim::exec
