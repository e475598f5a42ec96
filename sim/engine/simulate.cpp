#include "sim/engine/simulate.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "model/base/error.h"
#include "sim/engine/lockstep.h"
#include "sim/engine/simulation_run.h"

namespace dcsim {

/// The actor with the earliest event; of several at one time the first, so the host comes last.
SimulationRun::Next SimulationRun::NextEvent() const {
  if (stopped_) {
    return {};
  }
  std::size_t actor = 0;
  for (std::size_t s = 1; s < kStreamCount; ++s) {
    actor = gpu_.event(s) < gpu_.event(actor) ? s : actor;
  }
  const std::int64_t event = gpu_.event(actor);
  return host_event_ < event ? Next{kHost, host_event_} : Next{actor, event};
}

/// Steps that the host has issued and every stream has run have ended.
void SimulationRun::EndSteps() {
  const auto ended = [this](std::size_t step) {
    bool past = host_.step > step;
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      past = past && (program_.stream_tasks(s).empty() || streams_[s].step > step);
    }
    return past;
  };
  while (ended(result_.step_ends.size())) {
    const auto step = static_cast<std::uint32_t>(result_.step_ends.size());
    result_.step_ends.push_back(SimTime::FromNs(now_ + left_out_));
    Notify(&Observer::OnStepEnded, StepEvent{step, SimTime::FromNs(now_)});
  }
}

void SimulationRun::Stopped(Outcome outcome, TaskId task, std::uint32_t step) {
  result_.outcome = outcome;
  result_.stop = Stop{.task = task,
                      .step = step,
                      .requested = Bytes(0),
                      .began = SimTime::FromNs(host_.started + left_out_),
                      .time = SimTime::FromNs(now_ + left_out_),
                      .alive = memory_.Alive()};
  if (outcome == Outcome::kOutOfMemory) {
    result_.stop->buffer = memory_.refused();
    result_.stop->requested = schedule_.buffer(memory_.refused()).bytes;
  }
  host_.phase = HostPhase::kDone;
  stopped_ = true;
}

/// Nothing can happen any more: the first task that waits, in issue order, is to blame.
void SimulationRun::StopAtDeadlock() {
  auto first = std::tuple(host_.step, host_.task);
  for (std::size_t s = 0; s < kStreamCount; ++s) {
    if (progress_.ended[s] != progress_.issued[s]) {
      const StreamState& stream = streams_[s];
      first = std::min(first, std::tuple(stream.step, program_.stream_tasks(s)[stream.next]));
    }
  }
  Stopped(Outcome::kDeadlock, TaskId(std::get<1>(first)), std::get<0>(first));
}

void SimulationRun::Step(const Next& next) {
  constexpr std::int64_t kMost = kNever / 4;  // no task takes so long, so no time overflows
  if (next.at > kMost - left_out_) [[unlikely]] {
    throw Error("the steps to simulate take more than 70 years by their costs");
  }
  now_ = next.at;
  if (next.actor == kHost) {
    StepHost();
  } else if (gpu_.Advance(next.actor, now_)) {
    End(next.actor);
    if (host_.phase == HostPhase::kQueueFull && queued_ <= host_.room) {
      StepHost();  // at once: there is work before what it issues
    }
  }
  SettleStreams();
  gpu_.Settle(now_);
  if (!observers_.empty()) {
    ReportKernels();
  }
  if (host_.phase != HostPhase::kIssuing) {
    WakeHost();
  }
}

/// Tells observers when other tasks than before have no kernel on the GPU.
void SimulationRun::ReportKernels() {
  const std::uint32_t without = gpu_.WithoutKernel();
  if (without != without_kernel_) {
    without_kernel_ = without;
    Notify(&Observer::OnKernels, KernelEvent{SimTime::FromNs(now_), without});
  }
}

Simulation SimulationRun::Result() {
  const bool finished = host_.phase == HostPhase::kDone && AllStreamsIdle();
  if (result_.outcome == Outcome::kCompleted && !finished) {
    StopAtDeadlock();
  }
  if (result_.outcome != Outcome::kCompleted) {
    RequireKnownStop();
  }
  if (options_.warmup_steps > 0 && result_.step_ends.size() >= options_.warmup_steps) {
    result_.warmup_end = result_.step_ends[options_.warmup_steps - 1];
  }
  result_.memory = memory_.stats();
  result_.memory.retries -= host_.warmup_retries;
  result_.peak_live = memory_.peak_live();
  result_.live_after_step = memory_.live();
  result_.allocated_after_step = memory_.stats().allocated.current;
  return std::move(result_);
}

/// Everything before the first step; false where it already fails.
bool SimulationRun::Begin() {
  if (options_.pinned_memory && schedule_.host_pinned() > *options_.pinned_memory) {
    Stopped(Outcome::kOutOfPinnedMemory, TaskId::None(), 0);
    result_.stop->requested = schedule_.host_pinned();
    return false;
  }
  const StepMemory::Status residents = memory_.AllocateResidents();
  if (memory_.keeps_log()) {
    ReportAllocator(TaskId::None());
  }
  if (residents != StepMemory::Status::kDone) {
    Stopped(Outcome::kOutOfMemory, TaskId::None(), 0);
    return false;
  }
  host_.driver_calls = memory_.driver_calls();
  if (!observers_.empty()) {
    ReportMemory(TaskId::None());
  }
  BeginTask();
  return true;
}

Simulation SimulationRun::Run() {
  if (Begin()) {
    for (Next next = NextEvent(); next.at != kNever; next = NextEvent()) {
      Step(next);
    }
  }
  return Result();
}

Simulation SimulationRun::RunTogether(std::span<SimulationRun> runs) {
  runs.front().ranks_ = runs;
  std::vector<SimulationRun*> ranks;
  for (SimulationRun& run : runs) {
    for (SimulationRun* const before : ranks) {
      GpuSharing::Join(before->gpu_, run.gpu_);
    }
    ranks.push_back(&run);
  }
  const auto begins = [](SimulationRun& run) { return run.Begin(); };
  if (!std::all_of(runs.begin(), runs.end(), begins)) {
    return runs.front().Result();
  }
  RunInLockstep<SimulationRun>(ranks);
  std::uint64_t tasks = 0;
  for (const SimulationRun& run : runs) {
    tasks += run.result_.tasks_executed;
  }
  const auto stopped =
      std::find_if(runs.begin(), runs.end(), [](const SimulationRun& run) { return run.stopped_; });
  Simulation result = stopped == runs.end() ? runs.front().Result() : stopped->Result();
  result.tasks_executed = tasks;
  return result;
}

std::string_view OutcomeName(Outcome outcome) {
  constexpr std::array<std::string_view, 4> kNames = {"completed", "out_of_memory", "deadlock",
                                                      "out_of_pinned_memory"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::vector<Duration> Simulation::measured_step_times(std::uint32_t warmup_steps) const {
  std::vector<Duration> times;
  for (std::size_t step = warmup_steps; step < step_ends.size(); ++step) {
    const SimTime before = step == 0 ? SimTime() : step_ends[step - 1];
    times.push_back(step_ends[step] - before);
  }
  return times;
}

Simulation Simulate(const Schedule& schedule,
                    std::span<const WorkCost> costs,
                    const SimulationOptions& options,
                    std::span<Observer* const> observers) {
  const auto sharing = GpuSharing::Options::Of(options, schedule.ranks());
  // Two suffice where all do the same.
  const int ranks = sharing.RanksDiffer() ? std::max(2, schedule.ranks_told()) : 1;
  std::vector<StepProgram> programs;
  for (int told = 0; told < std::min(ranks, schedule.ranks_told()); ++told) {
    programs.emplace_back(schedule, costs, told);
  }
  std::vector<SimulationRun> runs;
  runs.reserve(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    const auto& program = programs[std::min(rank, programs.size() - 1)];
    runs.emplace_back(schedule, program, options, sharing,
                      rank == 0 ? observers : std::span<Observer* const>(),
                      static_cast<std::uint32_t>(rank));
  }
  return ranks == 1 ? runs.front().Run() : SimulationRun::RunTogether(runs);
}

}  // namespace dcsim
