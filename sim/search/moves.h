#pragma once

#include <optional>
#include <vector>

#include "sim/search/candidate.h"
#include "sim/search/random.h"
#include "sim/search/space.h"

namespace dcsim {

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

  /// One to three random changes: gathers of one parameter, of one role (the same name in every
  /// layer), of neighbours or of a whole graph moved, joined to launches or parted; parameters kept
  /// or not; other options of the same stage, at once where the candidate's are not the space's.
  /// The same candidate when a few draws all leave the space.
  Candidate Mutate(const Candidate& candidate, Random& random) const;

  /// Options and persistent parameters of one, the gathers of each graph from either; both must
  /// have the same stage and order.
  Candidate Cross(const Candidate& a, const Candidate& b, Random& random) const;

 private:
  using Selection = std::vector<std::uint32_t>;  // sites of a graph

  struct Draft;
  std::vector<std::uint8_t> Allowed(const std::vector<std::uint8_t>& persistent) const;
  void Change(Draft& draft, Random& random) const;
  Selection Select(const std::vector<GatherSite>& sites, Random& random) const;
  void ChangeGathers(Draft& draft, std::size_t graph, Random& random) const;
  void Shift(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void SetAhead(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void Group(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const;
  void TogglePersistent(Draft& draft, Random& random) const;
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
