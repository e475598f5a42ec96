#include "exec/measure/host_pace.h"

#include <algorithm>

namespace dcsim::exec {
namespace {

/// Ops of a stretch: launches of two stay below the launch queue of 1,022.
std::size_t StretchOf(const Schedule& schedule) {
  constexpr std::ptrdiff_t kMost = 100;
  const auto ops = std::ranges::count(schedule.tasks(), TaskKind::kCompute, &Task::kind);
  return static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(ops, 1, kMost));
}

/// Mean time of a stretch that counts, in ns; none where none does.
std::optional<double> MeanTime(const std::vector<std::optional<Duration>>& times) {
  double sum = 0;
  int count = 0;
  for (const auto& time : times) {
    sum += time ? static_cast<double>(time->ns()) : 0;
    count += time ? 1 : 0;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

HostPace::HostPace(const Schedule& schedule, GpuMarks marks)
    : schedule_(schedule),
      marks_(std::move(marks)),
      stretch_(StretchOf(schedule)) {}

bool HostPace::Counts(TaskId id) const {
  return schedule_.task(id).kind == TaskKind::kCompute;
}

void HostPace::BeforeTask(TaskId id) {
  if (id.index() == 0) {
    steps_.emplace_back();
    ops_ = 0;
    passed_ = {};
  }
  if (Counts(id)) {
    started_ = Clock::now();
  }
}

void HostPace::AfterTask(TaskId id) {
  if (!Counts(id)) {
    return;
  }
  passed_ += Clock::now() - started_;
  if (++ops_ == stretch_) {
    EndStretch();
  }
}

void HostPace::EndStretch() {
  marks_.set();
  const bool near = ended_ < 2 || marks_.passed(ended_ - 2);
  ++ended_;
  const auto ns = std::chrono::nanoseconds(passed_).count();
  steps_.back().push_back(near && near_ ? std::optional(Duration::FromNs(ns)) : std::nullopt);
  near_ = near;
  ops_ = 0;
  passed_ = {};
}

HostReading HostPace::reading(std::size_t steps) const {
  std::vector<std::pair<double, const Times*>> read;
  for (const Times& times : steps_) {
    if (const auto mean = MeanTime(times)) {
      read.emplace_back(*mean, &times);
    }
  }
  if (read.empty() || 2 * read.size() < steps) {
    return {};
  }
  const auto middle = read.begin() + static_cast<std::ptrdiff_t>((read.size() - 1) / 2);
  std::ranges::nth_element(read, middle);
  return {static_cast<std::int64_t>(stretch_), *middle->second, std::nullopt};
}

}  // namespace dcsim::exec
