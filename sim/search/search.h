#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/evaluator.h"
#include "sim/search/pareto.h"
#include "sim/search/space.h"
#include "sim/search/strategy.h"

namespace dcsim {

/// How far a search has come.
struct SearchProgress {
  std::string_view strategy;
  std::uint64_t evaluated = 0;
  std::uint64_t budget = 0;      // schedules that may be evaluated
  const Scored* best = nullptr;  // null until something fits
};

enum class SearchMethod : std::uint8_t {
  kDefault,     // grid, persistence, local search, evolution
  kExhaustive,  // every schedule of the space
};

struct SearchSettings {
  SearchMethod method = SearchMethod::kDefault;
  std::uint64_t seed = 0;
  std::uint64_t budget = 60'000;  // different schedules to evaluate; a batch more is possible
  std::vector<Candidate> starts;  // besides the grid's: a baseline, an earlier best plan
  std::function<bool()> should_stop = [] { return false; };  // asked between batches
  std::function<void(const SearchProgress&)> on_progress = [](const SearchProgress&) {};
};

/// What one strategy has done.
struct StrategyReport {
  std::string name;
  std::uint64_t evaluated = 0;  // different schedules
  std::uint64_t improved = 0;   // of the best
};

struct SearchResult {
  std::vector<Scored> front;    // by step time, shortest first; empty when nothing fits
  std::optional<Scored> least;  // when nothing fits: what reserves least
  std::vector<StrategyReport> strategies;
  std::uint64_t evaluated = 0;
  std::uint64_t folded = 0;  // of them, by exact shortcuts
  bool stopped = false;      // by should_stop, before the budget was used
  bool complete = false;     // every schedule of the space was evaluated
};

/// Searches a space for the schedules with the shortest step and the least memory. The result
/// follows from the inputs, whatever the number of threads, unless should_stop ends it.
///
/// Release by record_stream cannot be folded. By default such schedules are looked for as those
/// that release in host order, which take the same time where memory is enough; the front is then
/// scored anew with record_stream, whatever is left of the budget.
SearchResult Search(Evaluator& evaluator, const SearchSpace& space, const SearchSettings& settings);

}  // namespace dcsim
