#pragma once

#include <array>
#include <span>
#include <vector>

#include "model/ir/result.h"
#include "sim/engine/observer.h"
#include "sim/engine/simulate.h"

namespace dcsim {

/// Adds up where the time of the measured steps goes while a simulation runs.
class StepMetrics : public Observer {
 public:
  /// Counts from the end of step `warmup_steps` - 1 on.
  ///
  /// start   from a collective's start until its kernel runs
  StepMetrics(const Schedule& schedule,
              std::span<const WorkCost> costs,
              std::uint32_t warmup_steps,
              Duration start = {});

  void OnStepEnded(const StepEvent& event) override;
  void OnTaskStarted(const TaskEvent& event) override;
  void OnKernels(const KernelEvent& event) override;
  void OnTaskEnded(const TaskSpan& span) override;
  void OnMicroStep(const MicroStepEvent& event, std::vector<std::int64_t>& state) override;
  void OnRepeat(const RepeatEvent& event) override;

  /// Means over the measured steps, whole ns, rounded down.
  Duration compute() const { return Mean(sums_.compute); }
  Duration exposed_communication() const { return Mean(sums_.exposed); }
  /// Of the compute, time before and between the kernels of a task, and of that the time in which a
  /// collective's kernel runs. A measured step shows these as no compute, and as exposed
  /// communication.
  Duration compute_gaps() const { return Mean(sums_.gaps); }
  Duration exposed_gaps() const { return Mean(sums_.exposed_gaps); }
  /// Of the exposed communication, time in which no kernel of a collective runs yet. A measured
  /// step shows nothing there.
  Duration exposed_starts() const { return Mean(sums_.exposed_starts); }
  std::vector<CollectiveTotals> collectives() const;
  SourceShares sources() const;

 private:
  struct Sums {
    Duration compute;
    Duration exposed;
    Duration gaps;
    Duration exposed_gaps;
    Duration exposed_starts;
    std::array<CollectiveTotals, 3> collectives;
    std::array<Duration, 3> by_source;
  };

  Duration Mean(Duration total) const;
  void Sweep(SimTime now);
  void Count(const TaskSpan& span);
  bool CollectiveKernelRuns() const { return (communicating_ & ~without_kernel_) != 0; }
  void CountGaps(TaskId task);

  const Schedule& schedule_;
  std::span<const WorkCost> costs_;
  std::uint32_t warmup_steps_;
  Duration start_;
  std::int64_t steps_ = 0;
  bool counting_;
  SimTime swept_;                     // everything before it is counted
  bool computing_ = false;            // a compute task runs now
  std::uint32_t communicating_ = 0;   // a bit for each stream that runs a collective now
  std::uint32_t without_kernel_ = 0;  // of KernelEvent
  Duration delays_;                   // TaskEvent::delays of the compute task that runs
  Duration task_time_;                // of that task since its first kernel, counted
  Duration task_exposed_;             // … while a collective's kernel runs
  SimTime kernel_start_;              // of the first of the collectives that run
  Sums sums_;
  std::vector<Sums> marks_;  // where the step's micro-steps began
};

/// Who is alive when most bytes are: live bytes by class at the peak of the measured steps.
class PeakClasses : public Observer {
 public:
  PeakClasses(const Schedule& schedule, std::uint32_t warmup_steps);

  void OnStepIssued(const StepEvent& event) override;
  void OnMemory(const MemoryEvent& event) override;

  std::vector<ClassBytes> classes() const;

 private:
  const Schedule& schedule_;
  std::uint32_t warmup_steps_;
  std::vector<Bytes> now_;
  std::vector<Bytes> peak_;
  Bytes total_;
  Bytes peak_total_;
};

}  // namespace dcsim
