#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/ir/schedule.h"

namespace dcsim {

/// Micro-steps behind which a step may repeat: each period of a schedule divides it, and it is that
/// of what the engine leaves to chance.
inline constexpr std::uint32_t kMicroStepPeriod = 4;

/// Where the micro-steps of a schedule begin, and what tasks and buffers are called from there:
/// micro-steps that do the same have the same names for what they do it with. The optimizer is part
/// of the last one.
class MicroSteps {
 public:
  /// The schedule must outlive it.
  explicit MicroSteps(const Schedule& schedule);

  std::size_t count() const { return firsts_.size(); }
  /// Index of its first task.
  std::size_t first(std::size_t micro_step) const { return firsts_[micro_step]; }
  std::size_t end(std::size_t micro_step) const {
    return micro_step + 1 < count() ? firsts_[micro_step + 1] : schedule_.task_count();
  }

  /// A task by its distance, one of the first micro-step by its place in the step.
  std::int64_t NameOf(TaskId task, std::size_t from) const;
  /// A buffer by the distance of the micro-step that allocates it, and its place there; one of the
  /// first micro-step, or that no task allocates, by its id.
  std::int64_t NameOf(BufferId buffer, std::size_t from) const {
    const Birth& birth = births_[buffer.index()];
    const auto distance = static_cast<std::int64_t>(from) - birth.micro_step;
    return birth.micro_step == 0 ? -1 - static_cast<std::int64_t>(buffer.index())
                                 : std::int64_t{birth.place} << kDistanceBits | (kZero + distance);
  }
  /// The buffer that has its name where so many more micro-steps have begun.
  BufferId Later(BufferId buffer, std::size_t micro_steps) const {
    const Birth& birth = births_[buffer.index()];
    return birth.micro_step == 0 ? buffer : born_[birth.micro_step + micro_steps][birth.place];
  }
  /// All that a micro-step is, in these names.
  std::vector<std::int64_t> ShapeOf(std::size_t micro_step) const;

 private:
  static constexpr int kDistanceBits = 20;
  static constexpr std::int64_t kZero = 1 << 17;

  struct Birth {
    std::uint32_t micro_step = 0;
    std::uint32_t place = 0;  // among the buffers that it allocates
  };

  const Schedule& schedule_;
  std::vector<std::size_t> firsts_;
  std::vector<Birth> births_;                // by buffer
  std::vector<std::vector<BufferId>> born_;  // by micro-step, in order
};

/// How `left_out` further micro-steps before the last one repeat those of the schedule, if two of
/// them show it. A micro-step hands buffers and streams on to the next and nothing else, so those
/// that look alike are followed by others that do.
std::optional<Repetition> FindRepetition(const Schedule& schedule, std::uint32_t left_out);

/// How often a step does each work, those of left out micro-steps included. By work.
std::vector<std::int64_t> TimesInStep(const Schedule& schedule);

}  // namespace dcsim
