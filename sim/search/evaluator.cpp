#include "sim/search/evaluator.h"

#include <algorithm>
#include <array>

#include "sim/search/folded_memory.h"
#include "sim/search/folded_program.h"
#include "sim/search/parallel.h"

namespace dcsim {

/// What schedules with the same options and order have in common, folded where that is possible.
struct Frame {
  std::optional<FoldedProgram> program;
  std::optional<FoldedMemory> memory;
};

struct Evaluator::Frames {
  std::map<CandidateHash, Frame> frames;
};

namespace {

CandidateHash FrameHash(const Candidate& candidate) {
  Candidate frame;
  frame.options = candidate.options;
  frame.order = candidate.order;
  return HashOf(frame);
}

Frame BuildFrame(const SearchProblem& problem, const Candidate& candidate) {
  Frame frame;
  frame.program = FindFoldedProgram(problem, candidate.options, candidate.order);
  if (frame.program) {
    frame.memory = FindFoldedMemory(problem, candidate.options, candidate.order);
  }
  return frame;
}

/// The score by exact shortcuts, or nothing where they do not hold.
std::optional<Score> FindFoldedScore(const SearchProblem& problem,
                                     const Frame& frame,
                                     const Candidate& candidate,
                                     Bytes limit) {
  if (!frame.memory) {
    return std::nullopt;
  }
  const auto peaks = FindFoldedPeaks(*frame.memory, candidate);
  if (!peaks) {
    return std::nullopt;
  }
  Score score;
  score.peak_allocated = peaks->allocated;
  score.peak_reserved = peaks->reserved;
  if (peaks->reserved > limit) {
    score.verdict = Verdict::kOverLimit;
    return score;
  }
  const auto time = FindFoldedStepTime(problem, *frame.program, candidate);
  if (!time) {
    return std::nullopt;
  }
  score.step_time = *time;
  return score;
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"fits", "over_limit", "deadlock"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Bytes TensorMemory(const SearchProblem& problem, const ScheduleOptions& options) {
  return OptionsFor(options, problem.inputs.cluster, problem.ranks).allocator.capacity;
}

Score EvaluatePlainly(const SearchProblem& problem, const Candidate& candidate, Bytes limit) {
  const PredictionInputs& inputs = problem.inputs;
  const Schedule schedule = LowerFor(PlanOf(problem, candidate), inputs);
  const auto costs =
      EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster, inputs.clock_mhz);
  SimulationOptions options = OptionsFor(schedule, inputs);
  options.allocator.capacity = kMaxCapacity;
  options.waiting_delays = {};
  const Simulation simulation = Simulate(schedule, costs, options, {});
  Score score;
  score.peak_allocated = simulation.memory.allocated.peak;
  score.peak_reserved = simulation.memory.reserved.peak;
  if (simulation.outcome == Outcome::kDeadlock) {
    score.verdict = Verdict::kDeadlock;
  } else if (simulation.outcome == Outcome::kOutOfMemory || score.peak_reserved > limit) {
    score.verdict = Verdict::kOverLimit;
  } else {
    score.step_time = simulation.measured_step_times(options.warmup_steps).front();
  }
  return score;
}

Evaluator::Evaluator(const SearchProblem& problem, const EvaluatorOptions& options)
    : problem_(problem),
      threads_(options.threads),
      limit_(TensorMemory(problem, {})),
      frames_(std::make_unique<Frames>()) {
  limit_ = std::min(limit_, options.memory_limit.value_or(limit_));
}

Evaluator::~Evaluator() = default;

/// The frames of some candidates; new ones are built first.
std::vector<const Frame*> Evaluator::FramesOf(std::span<const Candidate> candidates,
                                              const std::vector<std::size_t>& chosen) {
  std::vector<std::pair<Frame*, const Candidate*>> fresh;
  std::vector<const Frame*> frames;
  for (const std::size_t i : chosen) {
    const auto [entry, is_new] = frames_->frames.emplace(FrameHash(candidates[i]), Frame());
    if (is_new) {
      fresh.emplace_back(&entry->second, &candidates[i]);
    }
    frames.push_back(&entry->second);
  }
  ParallelFor(fresh.size(), threads_,
              [&](std::size_t i) { *fresh[i].first = BuildFrame(problem_, *fresh[i].second); });
  return frames;
}

std::vector<Score> Evaluator::Evaluate(std::span<const Candidate> candidates) {
  std::vector<CandidateHash> hashes;
  hashes.reserve(candidates.size());
  std::vector<std::size_t> missing;  // the first candidate of each new hash
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    hashes.push_back(HashOf(candidates[i]));
    if (scores_.emplace(hashes.back(), Score()).second) {
      missing.push_back(i);
    }
  }
  std::vector<const Frame*> frames = FramesOf(candidates, missing);
  std::vector<Score> found(missing.size());
  std::vector<std::uint8_t> folded(missing.size());
  ParallelFor(missing.size(), threads_, [&](std::size_t i) {
    const Candidate& candidate = candidates[missing[i]];
    const Bytes limit = std::min(limit_, TensorMemory(problem_, candidate.options));
    const auto score = FindFoldedScore(problem_, *frames[i], candidate, limit);
    folded[i] = score ? 1 : 0;
    found[i] = score ? *score : EvaluatePlainly(problem_, candidate, limit);
  });
  folded_ += static_cast<std::uint64_t>(std::count(folded.begin(), folded.end(), 1));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    scores_[hashes[missing[i]]] = found[i];
  }
  evaluated_ += missing.size();
  std::vector<Score> scores;
  scores.reserve(hashes.size());
  for (const CandidateHash& hash : hashes) {
    scores.push_back(scores_.at(hash));
  }
  return scores;
}

}  // namespace dcsim
