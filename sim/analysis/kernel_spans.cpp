#include "sim/analysis/kernel_spans.h"

#include <algorithm>
#include <array>

#include "sim/engine/observer.h"

namespace dcsim {
namespace {

constexpr auto kCompute = static_cast<std::size_t>(StreamRole::kCompute);

class KernelSpanRecorder : public Observer {
 public:
  KernelSpanRecorder(const Schedule& schedule, std::span<const WorkCost> costs, std::uint32_t step)
      : schedule_(schedule),
        costs_(costs),
        step_(step) {}

  void OnStepEnded(const StepEvent& event) override {
    if (event.step + 1 == step_) {
      before_ = event.time;
    }
    completed_ = completed_ || event.step == step_;
  }

  void OnTaskStarted(const TaskEvent& event) override {
    Sweep(event.time);
    waited_[event.stream] = {};
    delays_[event.stream] = event.delays;
  }

  void OnKernels(const KernelEvent& event) override {
    Sweep(event.time);
    without_ = event.without;
  }

  void OnTaskEnded(const TaskSpan& span) override {
    Sweep(span.end);
    const bool at_once = ended_[span.stream] == span.start;
    ended_[span.stream] = span.end;
    if (span.step != step_ || span.end == span.start) {
      return;
    }
    // A side stream that was idle takes so long until its first kernel runs (WorkCost::start).
    const WorkCost& cost = costs_[schedule_.task(span.task).work.index()];
    const bool arrives = span.stream != kCompute && !at_once;
    const Duration wait = waited_[span.stream] + (arrives ? cost.start : Duration());
    const SimTime start = std::min(span.end, span.start + wait);
    const Duration gaps = std::min(cost.gaps + delays_[span.stream], span.end - start);
    spans_.push_back({span.task, span.stream, start, span.end, gaps});
  }

  std::vector<KernelSpan> spans() const {
    std::vector<KernelSpan> spans = completed_ ? spans_ : std::vector<KernelSpan>();
    for (KernelSpan& span : spans) {
      span.start = SimTime() + (span.start - before_);
      span.end = SimTime() + (span.end - before_);
    }
    return spans;
  }

 private:
  /// Books the time since the last event to the tasks that have no kernel.
  void Sweep(SimTime now) {
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      waited_[s] += (without_ >> s & 1U) != 0 ? now - swept_ : Duration();
    }
    swept_ = now;
  }

  const Schedule& schedule_;
  std::span<const WorkCost> costs_;
  std::uint32_t step_;
  SimTime before_;  // end of the step before
  bool completed_ = false;
  SimTime swept_;
  std::uint32_t without_ = 0;  // of KernelEvent
  std::array<Duration, kStreamCount> waited_{};
  std::array<Duration, kStreamCount> delays_{};  // TaskEvent::delays of those that run
  std::array<SimTime, kStreamCount> ended_{};    // the last task of each stream
  std::vector<KernelSpan> spans_;
};

}  // namespace

std::vector<KernelSpan> FindKernelSpans(const Schedule& schedule,
                                        std::span<const WorkCost> costs,
                                        const SimulationOptions& options) {
  KernelSpanRecorder recorder(schedule, costs, options.warmup_steps);
  const std::array<Observer*, 1> observers = {&recorder};
  Simulate(schedule, costs, options, observers);
  return recorder.spans();
}

}  // namespace dcsim
