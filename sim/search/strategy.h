#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/search/moves.h"
#include "sim/search/pareto.h"

namespace dcsim {

/// A way to search: asked for candidates, told their scores, until it asks for no more. Knows
/// nothing of threads, time or budgets. Deterministic: the same answers to the same scores.
class SearchStrategy {
 public:
  SearchStrategy() = default;
  SearchStrategy(const SearchStrategy&) = delete;
  SearchStrategy& operator=(const SearchStrategy&) = delete;
  virtual ~SearchStrategy() = default;

  virtual std::string_view name() const = 0;
  /// The next candidates to score; none when it is done.
  virtual std::vector<Candidate> Ask() = 0;
  /// Those candidates with their scores, in the same order.
  virtual void Tell(std::span<const Scored> scored) = 0;
};

/// Every combination of options with the same few gather settings for all parameters: at use, 1 to
/// 64 ahead, alone and in launches of 4, nothing or everything kept.
std::unique_ptr<SearchStrategy> MakeGrid(const Moves& moves);

/// Every candidate of a small space: options, subsets of the parameters that may stay, and for each
/// gather the first use before which it is issued and whether it joins the launch before it.
/// Throws Error when the space has more than `most` of them.
std::unique_ptr<SearchStrategy> MakeExhaustive(const Moves& moves,
                                               const SearchProblem& problem,
                                               std::uint64_t most);

/// Around each start: the parameters to keep that save the most gather time (ChooseKept) within
/// 1/16, 2/16, … of the memory that the start leaves below the limit.
std::unique_ptr<SearchStrategy> MakePersistence(const Moves& moves,
                                                const SearchProblem& problem,
                                                const std::vector<Scored>& starts,
                                                Bytes limit);

/// Hill climbing from the starts, in a few chains side by side: of a few random changes of each the
/// best one, unless it is slower. Kinds of changes that made something faster lately are drawn more
/// often; now and then the best chain takes the place of the worst; where nothing improves for some
/// rounds, again from the next starts or from a shaken best.
std::unique_ptr<SearchStrategy> MakeLocalSearch(const Moves& moves,
                                                std::vector<Scored> starts,
                                                std::uint64_t seed);

/// Children of the members of a front, crossed and changed. Never done by itself.
std::unique_ptr<SearchStrategy> MakeEvolution(const Moves& moves,
                                              const ParetoFront& front,
                                              std::uint64_t seed);

}  // namespace dcsim
