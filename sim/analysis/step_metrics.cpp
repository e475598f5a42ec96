#include "sim/analysis/step_metrics.h"

#include <algorithm>

namespace dcsim {
namespace {

constexpr auto kCompute = static_cast<std::uint8_t>(StreamRole::kCompute);

}  // namespace

StepMetrics::StepMetrics(const Schedule& schedule,
                         std::span<const WorkCost> costs,
                         std::uint32_t warmup_steps,
                         Duration start)
    : schedule_(schedule),
      costs_(costs),
      warmup_steps_(warmup_steps),
      start_(start),
      counting_(warmup_steps == 0) {
  for (std::size_t kind = 0; kind < collectives_.size(); ++kind) {
    collectives_[kind].kind = static_cast<CollectiveKind>(kind);
  }
}

Duration StepMetrics::Mean(Duration total) const {
  return steps_ == 0 ? Duration() : Duration::FromNs(total.ns() / steps_);
}

/// Books the time between the kernels of the compute task that has ended: as long as alone,
/// whatever slowed the kernels, and where its time was.
void StepMetrics::CountGaps(TaskId task) {
  const Duration gaps =
      std::min(costs_[schedule_.task(task).work.index()].gaps + delays_, task_time_);
  gaps_ += gaps;
  if (task_time_ > Duration()) {
    exposed_gaps_ += Duration::FromNs(gaps.ns() * task_exposed_.ns() / task_time_.ns());
  }
  task_time_ = {};
  task_exposed_ = {};
}

/// Books the time since the last event.
void StepMetrics::Sweep(SimTime now) {
  if (counting_) {
    const Duration passed = now - swept_;
    const Duration beside = CollectiveKernelRuns() ? passed : Duration();
    if (computing_) {
      const bool begun = (without_kernel_ & 1U << kCompute) == 0;
      compute_ += passed;
      (begun ? task_time_ : gaps_) += passed;
      (begun ? task_exposed_ : exposed_gaps_) += beside;
    } else if (communicating_ != 0) {
      exposed_ += passed;
      exposed_starts_ += std::max(std::min(now, kernel_start_) - swept_, passed - beside);
    }
  }
  swept_ = now;
}

void StepMetrics::OnStepEnded(const StepEvent& event) {
  Sweep(event.time);
  if (event.step >= warmup_steps_) {
    ++steps_;
  }
  counting_ = event.step + 1 >= warmup_steps_;
}

void StepMetrics::OnTaskStarted(const TaskEvent& event) {
  if (costs_[schedule_.task(event.task).work.index()].device > Duration()) {
    Sweep(event.time);
    if (schedule_.FindCollective(event.task) != nullptr) {
      kernel_start_ = communicating_ == 0 ? event.time + start_ : kernel_start_;
      communicating_ |= 1U << event.stream;
    } else if (event.stream == kCompute) {
      computing_ = true;
      delays_ = event.delays;
    }
  }
}

void StepMetrics::OnKernels(const KernelEvent& event) {
  Sweep(event.time);
  without_kernel_ = event.without;
}

void StepMetrics::OnTaskEnded(const TaskSpan& span) {
  if (span.end > span.start) {
    Sweep(span.end);
    communicating_ &= ~(1U << span.stream);
    if (span.stream == kCompute && computing_) {
      computing_ = false;
      CountGaps(span.task);
    }
  }
  if (span.step >= warmup_steps_) {
    Count(span);
  }
}

void StepMetrics::Count(const TaskSpan& span) {
  const WorkCost& cost = costs_[schedule_.task(span.task).work.index()];
  by_source_[static_cast<std::size_t>(cost.source)] += span.end - span.start;
  const Collective* collective = schedule_.FindCollective(span.task);
  if (collective == nullptr) {
    return;
  }
  CollectiveTotals& totals = collectives_[static_cast<std::size_t>(collective->kind)];
  totals.calls += static_cast<std::int64_t>(collective->launches());
  ++totals.launches;
  totals.payload += collective->payload();
  totals.wire += collective->wire();
  totals.busy += span.end - span.start;
}

std::vector<CollectiveTotals> StepMetrics::collectives() const {
  std::vector<CollectiveTotals> used;
  for (CollectiveTotals totals : collectives_) {
    if (totals.launches == 0 || steps_ == 0) {
      continue;
    }
    totals.calls /= steps_;
    totals.launches /= steps_;
    totals.payload = Bytes(totals.payload.count() / steps_);
    totals.wire = Bytes(totals.wire.count() / steps_);
    totals.busy = Mean(totals.busy);
    used.push_back(totals);
  }
  return used;
}

SourceShares StepMetrics::sources() const {
  const auto time = [this](Source source) {
    return static_cast<double>(by_source_[static_cast<std::size_t>(source)].ns());
  };
  const double all =
      time(Source::kMeasured) + time(Source::kInterpolated) + time(Source::kEstimated);
  if (all == 0) {
    return {};
  }
  return {time(Source::kMeasured) / all, time(Source::kInterpolated) / all,
          time(Source::kEstimated) / all};
}

PeakClasses::PeakClasses(const Schedule& schedule, std::uint32_t warmup_steps)
    : schedule_(schedule),
      warmup_steps_(warmup_steps),
      now_(BufferClassNames().size()),
      peak_(now_.size()) {
  for (const BufferId id : schedule.residents()) {
    const Buffer& buffer = schedule.buffer(id);
    now_[static_cast<std::size_t>(buffer.buffer_class)] += buffer.bytes;
    total_ += buffer.bytes;
  }
}

void PeakClasses::OnStepIssued(const StepEvent& event) {
  if (event.step == warmup_steps_) {
    peak_ = now_;
    peak_total_ = total_;
  }
}

void PeakClasses::OnMemory(const MemoryEvent& event) {
  if (event.task.is_none()) {
    return;
  }
  for (const MemoryStep& step : schedule_.memory(event.task)) {
    const Buffer& buffer = schedule_.buffer(step.buffer);
    if (step.frees && buffer.carried && event.step == 0) {
      continue;  // nothing is held before the first step
    }
    Bytes& of_class = now_[static_cast<std::size_t>(buffer.buffer_class)];
    if (step.frees) {
      of_class -= buffer.bytes;
      total_ -= buffer.bytes;
      continue;
    }
    of_class += buffer.bytes;
    total_ += buffer.bytes;
    if (total_ > peak_total_) {
      peak_total_ = total_;
      peak_ = now_;
    }
  }
}

std::vector<ClassBytes> PeakClasses::classes() const {
  std::vector<ClassBytes> used;
  for (std::size_t i = 0; i < peak_.size(); ++i) {
    if (peak_[i] > Bytes(0)) {
      used.push_back({static_cast<BufferClass>(i), peak_[i]});
    }
  }
  return used;
}

}  // namespace dcsim
