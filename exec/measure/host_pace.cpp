#include "exec/measure/host_pace.h"

#include <algorithm>
#include <utility>

namespace dcsim::exec {
namespace {

std::size_t AtMostAll(std::size_t stretch, const Schedule& schedule) {
  const auto ops = std::ranges::count(schedule.tasks(), TaskKind::kCompute, &Task::kind);
  return std::clamp<std::size_t>(static_cast<std::size_t>(ops), 1, stretch);
}

}  // namespace

HostPace::HostPace(const Schedule& schedule, std::size_t stretch, GpuMarks marks)
    : schedule_(schedule),
      marks_(std::move(marks)),
      stretch_(AtMostAll(stretch, schedule)) {}

bool HostPace::Computes(TaskId id) const {
  return schedule_.task(id).kind == TaskKind::kCompute;
}

void HostPace::BeginStep() {
  if (!steps_.empty()) {
    EndStretch();
  }
  steps_.push_back({static_cast<std::int64_t>(stretch_), {}, {}, std::nullopt, std::nullopt});
}

void HostPace::BeforeTask(TaskId id) {
  if (id.index() == 0) {
    BeginStep();
  }
  if (Computes(id)) {
    if (ops_ == stretch_) {
      EndStretch();
    }
    ++ops_;
  }
  started_ = Clock::now();
}

void HostPace::AfterTask(TaskId id) {
  const Clock::duration passed = Clock::now() - started_;
  if (Computes(id)) {
    computing_ += passed;
  } else if (!schedule_.task(id).on_host()) {
    between_ += passed;
  }
}

void HostPace::EndStretch() {
  marks_.set();
  const bool near = ended_ < 2 || marks_.passed(ended_ - 2);
  ++ended_;
  const auto time = [counts = near && near_](Clock::duration passed) {
    const auto ns = std::chrono::nanoseconds(passed).count();
    return counts ? std::optional(Duration::FromNs(ns)) : std::nullopt;
  };
  steps_.back().times.push_back(time(computing_));
  steps_.back().between.push_back(time(between_));
  near_ = near;
  ops_ = 0;
  computing_ = {};
  between_ = {};
}

std::vector<HostReading> HostPace::TakeReadings() {
  if (!steps_.empty()) {
    EndStretch();
  }
  for (HostReading& step : steps_) {
    if (std::ranges::none_of(step.times, [](const auto& time) { return time.has_value(); })) {
      step = {};
    }
  }
  return std::exchange(steps_, {});
}

HostReading AsOneStretch(const HostReading& reading) {
  HostReading whole;
  Duration computing;
  Duration between;
  for (std::size_t i = 0; i < reading.times.size(); ++i) {
    if (reading.times[i]) {
      whole.ops += reading.ops;
      computing += *reading.times[i];
      between += i < reading.between.size() ? reading.between[i].value_or(Duration()) : Duration();
    }
  }
  if (whole.ops > 0) {
    whole.times = {computing};
    whole.between = {between};
  }
  return whole;
}

}  // namespace dcsim::exec
