#pragma once

#include <optional>
#include <vector>

#include "sim/search/candidate.h"
#include "sim/search/random.h"
#include "sim/search/space.h"

namespace dcsim {

/// One kind of change to a candidate.
struct Move {
  enum class Action : std::uint8_t {
    kShift,     // gathers some first uses earlier or later
    kSetAhead,  // gathers a number of first uses before their own
    kGroup,     // runs of gathers share launches, or each gets its own
    kJoin,      // gathers share the launch of the gather before or behind them
    kKeep,      // parameters kept or not
    kSwapKept,  // one parameter kept instead of another
    kOptions,   // other options of the same stage
  };
  enum class Scope : std::uint8_t {
    kOne,
    kLaunch,      // those that share a launch
    kNeighbours,  // a run, by first use
    kRole,        // the same name in every layer
    kGraph,
  };
  Action action = Action::kShift;
  Scope scope = Scope::kOne;  // gathers of one graph; kSwapKept and kOptions do not look at it

  bool operator==(const Move&) const = default;
};

/// Every action with every scope that makes sense for it.
const std::vector<Move>& AllMoves();

/// Builds and changes candidates so that they stay inside a space. Immutable.
class Moves {
 public:
  Moves(const SearchProblem& problem, const SearchSpace& space);

  const SearchSpace& space() const { return space_; }
  const GatherRules& rules() const { return rules_; }
  const GatherSites& sites(std::uint32_t order) const { return sites_[order]; }
  /// Whether the space lists these options.
  bool HasOptions(const ScheduleOptions& options) const;
  std::size_t param_count() const { return role_of_.size(); }

  /// Puts the gathers of a ZeRO-3 candidate together from choices by graph and site. False when
  /// they lie outside the space.
  bool Assemble(const std::vector<GraphChoices>& choices, Candidate& candidate) const;

  /// Every gather issued `ahead` parameters before its own first use (at most `most_ahead`), as
  /// launches of up to `in_launch` parameters; persistent are those that must be kept and, by
  /// param, those of `persistent` (which may be empty) that may be. Stages 1 and 2 gather nothing.
  Candidate Uniform(const ScheduleOptions& options,
                    std::int64_t ahead,
                    std::size_t in_launch,
                    const std::vector<std::uint8_t>& persistent) const;

  /// The candidate with its persistent parameters replaced by these, where the space allows.
  Candidate WithPersistent(const Candidate& candidate,
                           const std::vector<std::uint8_t>& persistent) const;

  /// A change of this kind, of random gathers by a random distance; of stages 1 and 2 options are
  /// all that can change. Options that are not the space's are replaced first. The same candidate
  /// when a few draws all change nothing or leave the space.
  Candidate Apply(const Candidate& candidate, const Move& move, Random& random) const;

  /// One to three changes of random kinds.
  Candidate Mutate(const Candidate& candidate, Random& random) const;

  /// Options and persistent parameters of one, the gathers of each graph from either; both must
  /// have the same stage and order.
  Candidate Cross(const Candidate& a, const Candidate& b, Random& random) const;

 private:
  using Selection = std::vector<std::uint32_t>;  // sites of a graph

  struct Draft;
  std::vector<std::uint8_t> Allowed(const std::vector<std::uint8_t>& persistent) const;
  Draft TakeApart(const Candidate& candidate) const;
  void Change(Draft& draft, const Move& move, Random& random) const;
  Selection Select(const Draft& draft, std::size_t graph, Move::Scope scope, Random& random) const;
  static Selection LaunchOf(const GraphChoices& choices, std::uint32_t site);
  Selection RoleOf(const std::vector<GatherSite>& sites, std::uint32_t site) const;
  void Shift(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void SetAhead(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void Group(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void Join(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void Keep(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void SwapKept(Draft& draft, Random& random) const;
  bool MayChange(ParamId id) const { return rules_.may_keep(id) && !rules_.must_keep(id); }
  void ChangeOptions(Draft& draft, Random& random) const;
  std::uint32_t SlotAhead(const std::vector<GatherSite>& sites,
                          std::size_t site,
                          std::int64_t ahead) const;
  std::optional<Candidate> Finish(const Draft& draft) const;

  const SearchProblem& problem_;
  const SearchSpace& space_;
  GatherRules rules_;
  std::vector<GatherSites> sites_;      // by order
  std::vector<std::uint32_t> role_of_;  // by param: the same for names that differ in numbers only
};

}  // namespace dcsim
