#include "sim/search/evaluator.h"

#include <array>
#include <atomic>

#include "sim/search/parallel.h"

namespace dcsim {

struct Evaluator::Frames {};

std::string_view VerdictName(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"fits", "over_limit", "deadlock"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Bytes TensorMemory(const SearchProblem& problem) {
  return OptionsFor(ScheduleOptions(), problem.inputs.cluster).allocator.capacity;
}

Score EvaluatePlainly(const SearchProblem& problem, const Candidate& candidate, Bytes limit) {
  const PredictionInputs& inputs = problem.inputs;
  const Schedule schedule = LowerFor(PlanOf(problem, candidate), inputs);
  const auto costs = EstimateWorks(schedule, inputs.graph, inputs.profile, inputs.cluster);
  SimulationOptions options = OptionsFor(schedule, inputs.cluster);
  options.allocator.capacity = kMaxCapacity;
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
      limit_(TensorMemory(problem)),
      frames_(std::make_unique<Frames>()) {
  limit_ = std::min(limit_, options.memory_limit.value_or(limit_));
}

Evaluator::~Evaluator() = default;

std::vector<Score> Evaluator::Evaluate(std::span<const Candidate> candidates) {
  std::vector<CandidateHash> hashes;
  std::vector<std::size_t> missing;  // the first candidate of each new hash
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    hashes.push_back(HashOf(candidates[i]));
    if (scores_.emplace(hashes.back(), Score()).second) {
      missing.push_back(i);
    }
  }
  std::vector<Score> found(missing.size());
  ParallelFor(missing.size(), threads_, [&](std::size_t i) {
    found[i] = EvaluatePlainly(problem_, candidates[missing[i]], limit_);
  });
  for (std::size_t i = 0; i < missing.size(); ++i) {
    scores_[hashes[missing[i]]] = found[i];
  }
  evaluated_ += missing.size();
  std::vector<Score> scores;
  for (const CandidateHash& hash : hashes) {
    scores.push_back(scores_.at(hash));
  }
  return scores;
}

}  // namespace dcsim
