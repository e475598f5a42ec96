#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "model/ir/micro_steps.h"

namespace dcsim {

/// What a schedule leaves out (Schedule::repetition) does not follow from what it holds: nothing
/// shows that a step's micro-steps repeat. More of them have to be spelled out.
class DoesNotRepeat : public std::exception {
 public:
  const char* what() const noexcept override { return "the micro-steps do not repeat"; }
};

/// How a run stands where a micro-step begins.
struct MicroStepState {
  std::vector<std::int64_t> state;  // all that decides how it goes on; times since the begin, tasks
                                    // and buffers by their names there (MicroSteps)
  std::vector<std::int64_t> apart;  // how long ranks have been apart (GpuSharing::AddApart)
  std::vector<std::int64_t> since;  // since when, and how often anything has depended on it
  std::size_t oldest = 0;           // the first micro-step of which a task has not ended
  std::size_t newest = 0;           // the last one of which a task has begun, besides this
};

/// Finds in each step where a schedule's left out micro-steps belong: behind a stretch of others
/// that ends in the state in which it began.
class RepeatFinder {
 public:
  explicit RepeatFinder(const Schedule& schedule)
      : micro_steps_(schedule),
        repetition_(schedule.repetition()) {}

  const MicroSteps& micro_steps() const { return micro_steps_; }
  const Repetition& repetition() const { return repetition_; }

  void BeginStep() {
    seen_.assign(1, {});
    found_ = false;
  }
  struct Stretch {
    std::size_t from = 0;   // micro-step with which it begins
    std::size_t times = 0;  // it happens so many times more: all that the schedule leaves out, and
    std::size_t skipped = 0;  // so many of the micro-steps that it lists next
    bool ages = false;        // ranks only come further apart in it, and nothing depends on it
  };
  /// The next micro-step behind the first begins. Returns the stretch that ends here and repeats,
  /// if there is one; then the rest of the step has none to find.
  std::optional<Stretch> Find(MicroStepState now);
  /// Whether the step has such a stretch. Throws DoesNotRepeat where not.
  void EndStep() const;
  bool found() const { return found_; }

 private:
  MicroSteps micro_steps_;
  Repetition repetition_;
  std::vector<MicroStepState> seen_;  // by micro-step
  bool found_ = false;
};

}  // namespace dcsim
