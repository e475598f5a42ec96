#include "exec/measure/measure_steps.h"

#include <algorithm>
#include <array>
#include <chrono>

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "exec/device/cpu_times.h"
#include "exec/device/cuda_call.h"
#include "exec/device/event_time.h"
#include "exec/device/power_meter.h"
#include "exec/device/segment_record.h"
#include "exec/measure/host_pace.h"
#include "exec/measure/label_by_order.h"
#include "exec/measure/measured_timeline.h"
#include "exec/profiler/kernel_records.h"
#include "model/ir/result_reader.h"

namespace dcsim::exec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFirstStretch = 10;    // ops, where modules load and the GPU is idle mostly
constexpr std::size_t kStretch = 100;        // two of them stay below the launch queue of 1,022
constexpr int kBareSteps = 5;                // recorded without labels
constexpr std::size_t kBareStepsBefore = 2;  // of them, until host and clock are as in training

/// Marks every launch with its task.
class TaskLabels : public TaskListener {
 public:
  void BeforeTask(TaskId id) override { label_.emplace(id.index()); }
  void AfterTask(TaskId) override { label_.reset(); }

 private:
  std::optional<KernelRecorder::Label> label_;
};

/// When the host works on which task. Costs some 50 ns a task.
class HostTimes : public TaskListener {
 public:
  HostTimes(const Schedule& schedule, int rank) : schedule_(schedule), rank_(rank) {
    spans_.reserve(schedule.task_count());
  }

  void BeforeTask(TaskId) override { started_ = Now(); }
  void AfterTask(TaskId id) override {
    const bool waited = schedule_.task(id).on_host() && !schedule_.waits(id).empty();
    spans_.push_back({id, static_cast<std::uint16_t>(rank_), waited, started_, Now()});
  }
  std::vector<HostWork> Take() { return std::move(spans_); }

 private:
  SimTime Now() const {
    return SimTime::FromNs(std::chrono::nanoseconds(Clock::now() - step_started_).count());
  }

  const Schedule& schedule_;
  int rank_;
  Clock::time_point step_started_ = Clock::now();
  SimTime started_;
  std::vector<HostWork> spans_;
};

void RunAndKeepLoss(StepExecutor& executor, int step, RankMeasurement& measurement) {
  executor.RunStep(step);
  double sum = 0;
  const auto losses = executor.losses();
  for (const double loss : losses) {
    sum += loss;
  }
  measurement.losses.push_back(sum / static_cast<double>(losses.size()));
}

/// Times the host of steps that the compute stream runs (HostPace).
class PaceOnGpu {
 public:
  PaceOnGpu(StepExecutor& executor, const Schedule& schedule, std::size_t stretch)
      : executor_(executor),
        pace_(schedule,
              stretch,
              {[this] { marks_[set_++ % marks_.size()].record(); },
               [this](std::size_t n) { return marks_[n % marks_.size()].query(); }}) {
    executor_.Listen(&pace_);
  }
  PaceOnGpu(const PaceOnGpu&) = delete;
  PaceOnGpu& operator=(const PaceOnGpu&) = delete;
  ~PaceOnGpu() { executor_.Listen(nullptr); }

  /// Behind the last step.
  std::vector<HostReading> TakeReadings() {
    executor_.Listen(nullptr);
    return pace_.TakeReadings();
  }

 private:
  StepExecutor& executor_;
  std::array<at::cuda::CUDAEvent, 4> marks_;  // the last ones
  std::size_t set_ = 0;
  HostPace pace_;
};

Bytes ReservedNow(c10::DeviceIndex device) {
  return Bytes(c10::cuda::CUDACachingAllocator::getDeviceStats(device).reserved_bytes[0].current);
}

/// The allocator works as the host goes, so a step's peak is known when the host has issued it.
class StepPeaks {
 public:
  explicit StepPeaks(c10::DeviceIndex device) : device_(device) { Start(); }

  void EndStep(RankMeasurement& measurement) {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device_);
    const Bytes peak(stats.allocated_bytes[0].peak);
    const bool first = measurement.peak_allocated == Bytes(0);
    measurement.peak_allocated = std::max(measurement.peak_allocated, peak);
    measurement.least_peak_allocated =
        first ? peak : std::min(measurement.least_peak_allocated, peak);
    measurement.peak_active = std::max(measurement.peak_active, Bytes(stats.active_bytes[0].peak));
    measurement.peak_reserved =
        std::max(measurement.peak_reserved, Bytes(stats.reserved_bytes[0].peak));
    measurement.reserved_after.emplace_back(stats.reserved_bytes[0].current);
    Start();
  }

 private:
  void Start() { c10::cuda::CUDACachingAllocator::resetPeakStats(device_); }

  c10::DeviceIndex device_;
};

/// Step times from events on the compute stream: the host never waits between steps.
void TimeOnGpu(StepExecutor& executor,
               const Schedule& schedule,
               c10::DeviceIndex device,
               const MeasureSettings& settings,
               RankMeasurement& measurement) {
  StepPeaks peaks(device);
  std::vector<at::cuda::CUDAEvent> ends;
  for (int i = 0; i <= settings.steps; ++i) {
    ends.emplace_back(cudaEventDefault);
  }
  PowerMeter meter(device);
  meter.Start();  // takes milliseconds: before the clock of the steps runs
  PaceOnGpu pace(executor, schedule, kStretch);
  const auto cpus_before = ReadCpuTimes();
  ends.front().record();
  for (std::size_t step = 0; step < static_cast<std::size_t>(settings.steps); ++step) {
    executor.RunStep(settings.warmup_steps + static_cast<int>(step));
    ends[step + 1].record();
    peaks.EndStep(measurement);
  }
  measurement.hosts = pace.TakeReadings();
  executor.Synchronize();
  const auto cpus_after = ReadCpuTimes();
  if (const auto reading = meter.Stop()) {
    measurement.sm_clock_mhz = reading->sm_clock_mhz;
    measurement.watts = reading->watts;
  }
  if (cpus_before && cpus_after) {
    measurement.stolen = StolenShare(*cpus_before, *cpus_after);
  }
  for (std::size_t i = 1; i < ends.size(); ++i) {
    measurement.step_times.push_back(TimeBetween(ends[i - 1], ends[i]));
  }
}

void TimeOnHost(StepExecutor& executor,
                const MeasureSettings& settings,
                RankMeasurement& measurement) {
  for (int i = 0; i < settings.steps; ++i) {
    const auto start = Clock::now();
    RunAndKeepLoss(executor, settings.warmup_steps + i, measurement);
    const auto passed = std::chrono::nanoseconds(Clock::now() - start).count();
    measurement.step_times.push_back(Duration::FromNs(passed));
  }
}

bool IsQuiet(const WaitingDelays& delays) {
  return std::ranges::all_of(delays, [](Duration delay) { return delay <= kQuietDelay; });
}

void ReadMemory(c10::DeviceIndex device,
                std::int64_t retries_before,
                RankMeasurement& measurement) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  std::size_t free = 0;
  std::size_t total = 0;
  DCSIM_CUDA(cudaMemGetInfo(&free, &total));
  measurement.outside_allocator =
      Bytes(static_cast<std::int64_t>(total - free) - stats.reserved_bytes[0].current);
  measurement.allocated_after_step = Bytes(stats.allocated_bytes[0].current);
  measurement.retries = stats.num_alloc_retries - retries_before;
}

/// What the host does in a step that begins with an idle GPU, without records, which slow calls.
std::vector<HostWork> TimeHost(StepExecutor& executor,
                               const Schedule& schedule,
                               int step,
                               int rank) {
  executor.Synchronize();
  HostTimes times(schedule, rank);
  executor.Listen(&times);
  executor.RunStep(step);
  executor.Listen(nullptr);
  executor.Synchronize();
  return times.Take();
}

/// A step whose records say which task launched them. The step before pays for the recorder's
/// start.
std::vector<KernelRecord> RecordLabelledStep(StepExecutor& executor, int first_step) {
  KernelRecorder recorder(KernelRecorder::Labels::kOfLaunches);
  TaskLabels labels;
  executor.Listen(&labels);
  executor.RunStep(first_step);
  executor.Synchronize();
  recorder.Take();
  executor.RunStep(first_step + 1);
  executor.Synchronize();
  executor.Listen(nullptr);
  return recorder.Take();
}

/// Steps one behind another, as the measured ones are.
std::vector<KernelRecord> RecordSteps(StepExecutor& executor, int first_step, int steps) {
  KernelRecorder recorder(KernelRecorder::Labels::kNone);
  for (int step = first_step; step < first_step + steps; ++step) {
    executor.RunStep(step);
  }
  executor.Synchronize();
  return recorder.Take();
}

void TraceSteps(StepExecutor& executor,
                const Schedule& schedule,
                int first_step,
                const MeasureSettings& settings,
                RankMeasurement& measurement) {
  const int rank = executor.rank();
  auto host = TimeHost(executor, schedule, first_step, rank);
  const auto labelled = RecordLabelledStep(executor, first_step + 1);
  const auto bare = RecordSteps(executor, first_step + 3, kBareSteps);
  auto steps = LabelByOrder(labelled, bare, kBareSteps);
  if (!steps) {
    settings.report("kernels differ from step to step: the trace is that of a step by itself");
    steps = {labelled};
  }
  const std::size_t before = std::min<std::size_t>(kBareStepsBefore, steps->size() - 1);
  const StepTraces traces = MeanTraces(*steps, before, schedule);
  measurement.compute = traces.compute;
  measurement.exposed_communication = traces.exposed_communication;
  measurement.traced_step = traces.step_time;
  for (std::size_t kind = 0; kind < traces.busy.size(); ++kind) {
    measurement.busy.push_back({static_cast<CollectiveKind>(kind), traces.busy[kind]});
  }
  measurement.timeline = TimelineOf(steps->back(), schedule, traces.last_start_ns, rank);
  measurement.timeline->host = std::move(host);
  measurement.timeline_start_ns = traces.last_start_ns;
}

}  // namespace

std::optional<RankMeasurement> MeasureSteps(StepExecutor& executor,
                                            const Schedule& schedule,
                                            c10::Device device,
                                            const MeasureSettings& settings,
                                            bool require_quiet) {
  RankMeasurement measurement;
  constexpr int kStepsOfTrace = 3 + kBareSteps;  // the host's times, two with labels, and those
  executor.PrepareInputs(0, settings.warmup_steps + settings.steps + kStepsOfTrace);
  settings.report("warming up, " + std::to_string(settings.warmup_steps) + " steps");
  for (int step = 0; step < settings.warmup_steps; ++step) {
    std::optional<PaceOnGpu> first_pace;
    if (device.is_cuda() && step == 0) {
      first_pace.emplace(executor, schedule, kFirstStretch);
    }
    RunAndKeepLoss(executor, step, measurement);
    if (first_pace) {
      measurement.first_host = AsOneStretch(first_pace->TakeReadings().front());
    }
    if (device.is_cuda()) {
      measurement.reserved_after.push_back(ReservedNow(device.index()));
    }
    if (step == 0 && require_quiet && settings.on_any_rank(!IsQuiet(executor.waiting_delays()))) {
      settings.report("a waiting stream delays kernels: streams are chosen once more");
      return std::nullopt;
    }
  }
  settings.report("measuring " + std::to_string(settings.steps) + " steps");
  if (!device.is_cuda()) {
    TimeOnHost(executor, settings, measurement);
    return measurement;
  }
  executor.Synchronize();
  const auto before = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  TimeOnGpu(executor, schedule, device.index(), settings, measurement);
  ReadMemory(device.index(), before.num_alloc_retries, measurement);
  measurement.segments = RecordedSegments();
  measurement.waiting_delays = executor.waiting_delays();
  if (settings.trace) {
    settings.report("tracing steps");
    TraceSteps(executor, schedule, settings.warmup_steps + settings.steps, settings, measurement);
  }
  return measurement;
}

}  // namespace dcsim::exec
