#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/units.h"
#include "sim/search/candidate.h"

namespace dcsim {

/// Why a schedule has a step time, or none.
enum class Verdict : std::uint8_t {
  kFits,
  kOverLimit,  // reserves more than the limit allows
  kDeadlock,
};
std::string_view VerdictName(Verdict verdict);

/// What a schedule takes. Peaks are those of an allocator that never has to give memory back: a
/// schedule fits when they stay below the limit, and then runs the same under the limit.
struct Score {
  Verdict verdict = Verdict::kFits;
  Duration step_time;  // of the measured step; 0 unless it fits
  Bytes peak_allocated;
  Bytes peak_reserved;

  bool fits() const { return verdict == Verdict::kFits; }
  bool operator==(const Score&) const = default;
};

struct EvaluatorOptions {
  unsigned threads = 1;               // >= 1
  std::optional<Bytes> memory_limit;  // of reserved bytes; none: what the GPU leaves to tensors
};

struct Frame;

/// Scores schedules without simulating each in full: 2 steps to warm up and a measured one, as
/// Predict does, by exact shortcuts where they hold (docs/design/search.md), by Lower and Simulate
/// where not. Each different candidate is evaluated once. Scores do not depend on the number of
/// threads.
class Evaluator {
 public:
  /// Throws Error when the GPU leaves no memory to tensors.
  Evaluator(const SearchProblem& problem, const EvaluatorOptions& options);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Scores by candidate. Candidates must be what FindPlanFaults finds nothing wrong with.
  /// Throws Error when the cluster cannot price a task.
  std::vector<Score> Evaluate(std::span<const Candidate> candidates);
  Score Evaluate(const Candidate& candidate) { return Evaluate({&candidate, 1}).front(); }

  /// Different candidates scored so far, and how many of them by exact shortcuts.
  std::uint64_t evaluated() const { return evaluated_; }
  std::uint64_t folded() const { return folded_; }
  Bytes memory_limit() const { return limit_; }
  const SearchProblem& problem() const { return problem_; }

 private:
  struct Frames;

  std::vector<const Frame*> FramesOf(std::span<const Candidate> candidates,
                                     const std::vector<std::size_t>& chosen);

  const SearchProblem& problem_;
  unsigned threads_;
  Bytes limit_;
  std::uint64_t evaluated_ = 0;
  std::uint64_t folded_ = 0;
  std::map<CandidateHash, Score> scores_;
  std::unique_ptr<Frames> frames_;
};

/// The score of a candidate by lowering its plan and simulating every task: what the shortcuts are
/// held against.
Score EvaluatePlainly(const SearchProblem& problem, const Candidate& candidate, Bytes limit);

/// Memory that the cluster's GPU leaves to tensors, with these options. Throws Error when it is
/// nothing.
Bytes TensorMemory(const SearchProblem& problem, const ScheduleOptions& options);

}  // namespace dcsim
