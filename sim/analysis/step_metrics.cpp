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
  for (std::size_t kind = 0; kind < sums_.collectives.size(); ++kind) {
    sums_.collectives[kind].kind = static_cast<CollectiveKind>(kind);
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
  sums_.gaps += gaps;
  if (task_time_ > Duration()) {
    sums_.exposed_gaps += Duration::FromNs(gaps.ns() * task_exposed_.ns() / task_time_.ns());
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
      sums_.compute += passed;
      (begun ? task_time_ : sums_.gaps) += passed;
      (begun ? task_exposed_ : sums_.exposed_gaps) += beside;
    } else if (communicating_ != 0) {
      sums_.exposed += passed;
      sums_.exposed_starts += std::max(std::min(now, kernel_start_) - swept_, passed - beside);
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
  sums_.by_source[static_cast<std::size_t>(cost.source)] += span.end - span.start;
  const Collective* collective = schedule_.FindCollective(span.task);
  if (collective == nullptr) {
    return;
  }
  CollectiveTotals& totals = sums_.collectives[static_cast<std::size_t>(collective->kind)];
  totals.calls += static_cast<std::int64_t>(collective->launches());
  ++totals.launches;
  totals.payload += collective->payload();
  totals.wire += collective->wire();
  totals.busy += span.end - span.start;
}

void StepMetrics::OnMicroStep(const MicroStepEvent& event, std::vector<std::int64_t>& state) {
  Sweep(event.time);
  marks_.resize(event.micro_step);
  marks_.push_back(sums_);
  const std::int64_t until_kernel = communicating_ == 0 ? 0 : (kernel_start_ - event.time).ns();
  for (const std::int64_t number :
       {std::int64_t{computing_}, std::int64_t{communicating_}, std::int64_t{without_kernel_},
        computing_ ? delays_.ns() : 0, task_time_.ns(), task_exposed_.ns(),
        std::max<std::int64_t>(0, until_kernel)}) {
    state.push_back(number);
  }
}

void StepMetrics::OnRepeat(const RepeatEvent& event) {
  if (event.step < warmup_steps_) {
    return;
  }
  const Sums& from = marks_[event.from];
  const auto repeat = [&event](auto& sum, const auto& before) {
    sum += (sum - before) * event.times;
  };
  repeat(sums_.compute, from.compute);
  repeat(sums_.exposed, from.exposed);
  repeat(sums_.gaps, from.gaps);
  repeat(sums_.exposed_gaps, from.exposed_gaps);
  repeat(sums_.exposed_starts, from.exposed_starts);
  for (std::size_t i = 0; i < sums_.collectives.size(); ++i) {
    CollectiveTotals& totals = sums_.collectives[i];
    const CollectiveTotals& before = from.collectives[i];
    repeat(totals.calls, before.calls);
    repeat(totals.launches, before.launches);
    repeat(totals.payload, before.payload);
    repeat(totals.wire, before.wire);
    repeat(totals.busy, before.busy);
    repeat(sums_.by_source[i], from.by_source[i]);
  }
}

std::vector<CollectiveTotals> StepMetrics::collectives() const {
  std::vector<CollectiveTotals> used;
  for (CollectiveTotals totals : sums_.collectives) {
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
    return static_cast<double>(sums_.by_source[static_cast<std::size_t>(source)].ns());
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
