#include "sim/search/moves.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "model/base/error.h"
#include "sim/search/param_roles.h"

namespace dcsim {
namespace {

constexpr std::array<std::int64_t, 8> kAheads = {0, 1, 2, 4, 8, 16, 32, 64};

}  // namespace

const std::vector<Move>& AllMoves() {
  using Action = Move::Action;
  using Scope = Move::Scope;
  static const std::vector<Move> all = {
      {Action::kShift, Scope::kOne},        {Action::kShift, Scope::kLaunch},
      {Action::kShift, Scope::kNeighbours}, {Action::kShift, Scope::kRole},
      {Action::kShift, Scope::kGraph},      {Action::kSetAhead, Scope::kOne},
      {Action::kSetAhead, Scope::kLaunch},  {Action::kSetAhead, Scope::kNeighbours},
      {Action::kSetAhead, Scope::kRole},    {Action::kSetAhead, Scope::kGraph},
      {Action::kGroup, Scope::kOne},        {Action::kGroup, Scope::kLaunch},
      {Action::kGroup, Scope::kNeighbours}, {Action::kGroup, Scope::kRole},
      {Action::kGroup, Scope::kGraph},      {Action::kJoin, Scope::kOne},
      {Action::kJoin, Scope::kLaunch},      {Action::kKeep, Scope::kOne},
      {Action::kKeep, Scope::kNeighbours},  {Action::kKeep, Scope::kRole},
      {Action::kKeep, Scope::kGraph},       {Action::kSwapKept, Scope::kOne},
      {Action::kOptions, Scope::kOne},
  };
  return all;
}

/// A candidate taken apart.
struct Moves::Draft {
  ScheduleOptions options;
  std::uint32_t order = 0;
  std::vector<std::uint8_t> persistent;
  std::vector<GraphChoices> choices;  // by graph
};

Moves::Moves(const SearchProblem& problem, const SearchSpace& space)
    : problem_(problem),
      space_(space),
      rules_(space.gathers, problem.inputs.graph),
      role_of_(ParamRoles(problem.inputs.graph)) {
  for (std::uint32_t order = 0; order < problem.orders.size(); ++order) {
    sites_.push_back(FindGatherSites(problem, order));
  }
}

/// Position of the first use that is `ahead` sites before this one's own.
std::uint32_t Moves::SlotAhead(const std::vector<GatherSite>& sites,
                               std::size_t site,
                               std::int64_t ahead) const {
  const auto most =
      std::min<std::int64_t>(static_cast<std::int64_t>(site), space_.gathers.most_ahead);
  const auto distance = static_cast<std::size_t>(std::clamp<std::int64_t>(ahead, 0, most));
  return sites[site - distance].first;
}

Candidate Moves::Uniform(const ScheduleOptions& options,
                         std::int64_t ahead,
                         std::size_t in_launch,
                         const std::vector<std::uint8_t>& persistent) const {
  Draft draft;
  draft.options = options;
  draft.persistent.resize(problem_.inputs.graph.params.size());
  draft.choices.resize(sites_[0].size());
  if (options.stage == 3) {
    draft.persistent = Allowed(persistent);
  }
  for (std::size_t g = 0; g < sites_[0].size() && options.stage == 3; ++g) {
    const auto& sites = sites_[0][g];
    for (std::size_t i = 0; i < sites.size(); ++i) {
      const std::size_t leader = i - i % in_launch;
      draft.choices[g].push_back({SlotAhead(sites, leader, ahead), i != leader});
    }
  }
  if (auto candidate = Finish(draft)) {
    return *std::move(candidate);
  }
  DCSIM_CHECK(in_launch > 1 || ahead > 0) << "no space forbids a gather at its use";
  return in_launch > 1 ? Uniform(options, ahead, 1, persistent)
                       : Uniform(options, ahead / 2, 1, persistent);
}

Candidate Moves::WithPersistent(const Candidate& candidate,
                                const std::vector<std::uint8_t>& persistent) const {
  Candidate changed = candidate;
  changed.persistent = Allowed(persistent);
  return changed;
}

/// Those of the parameters that may stay gathered, and those that must.
std::vector<std::uint8_t> Moves::Allowed(const std::vector<std::uint8_t>& persistent) const {
  std::vector<std::uint8_t> allowed(param_count());
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const bool asked = i < persistent.size() && persistent[i] != 0;
    const bool keeps = asked && rules_.may_keep(ParamId(i));
    allowed[i] = keeps || rules_.must_keep(ParamId(i)) ? 1 : 0;
  }
  return allowed;
}

/// The gathers that share a launch with this one.
Moves::Selection Moves::LaunchOf(const GraphChoices& choices, std::uint32_t site) {
  const std::uint32_t position = choices[site].position;
  std::uint32_t begin = site;
  for (std::uint32_t i = site; choices[begin].joined && i-- > 0;) {
    begin = choices[i].position == position ? i : begin;
  }
  Selection launch = {begin};
  for (std::uint32_t i = begin + 1; i < choices.size(); ++i) {
    if (choices[i].position == position && !choices[i].joined) {
      break;
    }
    if (choices[i].position == position) {
      launch.push_back(i);
    }
  }
  return launch;
}

Moves::Selection Moves::RoleOf(const std::vector<GatherSite>& sites, std::uint32_t site) const {
  Selection role;
  for (std::uint32_t i = 0; i < sites.size(); ++i) {
    if (role_of_[sites[i].param.index()] == role_of_[sites[site].param.index()]) {
      role.push_back(i);
    }
  }
  return role;
}

/// Random gathers of a graph, which has some.
Moves::Selection Moves::Select(const Draft& draft,
                               std::size_t graph,
                               Move::Scope scope,
                               Random& random) const {
  constexpr std::size_t kMostNeighbours = 32;
  const auto& sites = sites_[draft.order][graph];
  const auto one = static_cast<std::uint32_t>(random.Below(sites.size()));
  std::size_t begin = one;
  std::size_t end = one + 1;
  switch (scope) {
    case Move::Scope::kOne:
      break;
    case Move::Scope::kLaunch:
      return LaunchOf(draft.choices[graph], one);
    case Move::Scope::kNeighbours:
      end = std::min(sites.size(),
                     one + 1 + random.Below(std::min<std::size_t>(sites.size(), kMostNeighbours)));
      break;
    case Move::Scope::kRole:
      return RoleOf(sites, one);
    case Move::Scope::kGraph:
      begin = 0;
      end = sites.size();
      break;
  }
  Selection chosen(end - begin);
  std::iota(chosen.begin(), chosen.end(), static_cast<std::uint32_t>(begin));
  return chosen;
}

/// Some first uses earlier or later.
void Moves::Shift(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const {
  const auto& sites = sites_[draft.order][graph];
  const std::int64_t distance = std::int64_t{1} << random.Below(4);
  const std::int64_t by = random.Below(2) == 0 ? distance : -distance;
  for (const std::uint32_t i : chosen) {
    GatherChoice& choice = draft.choices[graph][i];
    const auto from =
        std::lower_bound(sites.begin(), sites.end(), choice.position,
                         [](const GatherSite& site, std::uint32_t at) { return site.first < at; });
    choice.position =
        SlotAhead(sites, i, static_cast<std::int64_t>(i) - (from - sites.begin()) + by);
  }
}

void Moves::SetAhead(Draft& draft,
                     std::size_t graph,
                     const Selection& chosen,
                     Random& random) const {
  const std::int64_t ahead = kAheads[random.Below(kAheads.size())];
  for (const std::uint32_t i : chosen) {
    draft.choices[graph][i].position = SlotAhead(sites_[draft.order][graph], i, ahead);
  }
}

/// Runs of the chosen sites share launches, or each gets its own.
void Moves::Group(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const {
  const std::size_t length = std::size_t{1} << random.Below(5);
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    GatherChoice& choice = draft.choices[graph][chosen[k]];
    choice.joined = k % length != 0;
    if (choice.joined) {
      choice.position = draft.choices[graph][chosen[k - k % length]].position;
    }
  }
}

/// Into the launch of the gather before or behind by first use. Of two launches the earlier one
/// takes all, where the first use of all lies behind it.
void Moves::Join(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const {
  GraphChoices& choices = draft.choices[graph];
  const bool before = random.Below(2) == 0;
  const std::uint32_t other = before ? chosen.front() - 1 : chosen.back() + 1;
  if (other >= choices.size()) {
    return;  // nothing there; before the first, too
  }
  Selection together = LaunchOf(choices, other);
  together.insert(together.end(), chosen.begin(), chosen.end());
  std::sort(together.begin(), together.end());
  together.erase(std::unique(together.begin(), together.end()), together.end());
  const std::uint32_t position =
      std::min(choices[other].position, choices[chosen.front()].position);
  for (const std::uint32_t i : together) {
    choices[i] = {position, i != together.front()};
  }
}

void Moves::Keep(Draft& draft, std::size_t graph, const Selection& chosen, Random& random) const {
  const std::uint8_t kept = random.Below(2) == 0 ? 0 : 1;
  for (const std::uint32_t i : chosen) {
    const ParamId id = sites_[draft.order][graph][i].param;
    if (MayChange(id)) {
      std::uint8_t& flag = draft.persistent[id.index()];
      flag = chosen.size() == 1 ? 1 - flag : kept;
    }
  }
}

/// One kept parameter for one that is not: the way on where memory is full.
void Moves::SwapKept(Draft& draft, Random& random) const {
  std::array<std::vector<std::size_t>, 2> by_flag;
  for (std::size_t i = 0; i < draft.persistent.size(); ++i) {
    if (MayChange(ParamId(i))) {
      by_flag[draft.persistent[i]].push_back(i);
    }
  }
  if (by_flag[0].empty() || by_flag[1].empty()) {
    return;
  }
  draft.persistent[by_flag[0][random.Below(by_flag[0].size())]] = 1;
  draft.persistent[by_flag[1][random.Below(by_flag[1].size())]] = 0;
}

/// A draw that keeps the stage; none when the space lacks it, or the draws miss it.
void Moves::ChangeOptions(Draft& draft, Random& random) const {
  constexpr int kDraws = 16;
  for (int draw = 0; draw < kDraws; ++draw) {
    const ScheduleOptions& drawn = space_.options[random.Below(space_.options.size())];
    if (drawn.stage == draft.options.stage) {
      draft.options = drawn;
      return;
    }
  }
}

bool Moves::HasOptions(const ScheduleOptions& options) const {
  return std::find(space_.options.begin(), space_.options.end(), options) != space_.options.end();
}

void Moves::Change(Draft& draft, const Move& move, Random& random) const {
  const bool gathers = draft.options.stage == 3 && !draft.choices.empty();
  if (!gathers || move.action == Move::Action::kOptions) {
    return ChangeOptions(draft, random);
  }
  if (move.action == Move::Action::kSwapKept) {
    return SwapKept(draft, random);
  }
  const std::size_t graph = random.Below(draft.choices.size());
  if (sites_[draft.order][graph].empty()) {
    return;
  }
  const Selection chosen = Select(draft, graph, move.scope, random);
  switch (move.action) {
    case Move::Action::kShift:
      return Shift(draft, graph, chosen, random);
    case Move::Action::kSetAhead:
      return SetAhead(draft, graph, chosen, random);
    case Move::Action::kGroup:
      return Group(draft, graph, chosen, random);
    case Move::Action::kJoin:
      return Join(draft, graph, chosen, random);
    default:
      return Keep(draft, graph, chosen, random);
  }
}

bool Moves::Assemble(const std::vector<GraphChoices>& choices, Candidate& candidate) const {
  for (std::size_t g = 0; g < choices.size(); ++g) {
    const auto& sites = sites_[candidate.order][g];
    GraphChoices chosen = choices[g];
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      // Gathered in an earlier graph already: where its launch would stand makes no difference.
      if (candidate.persistent[sites[i].param.index()] != 0 && !sites[i].first_graph) {
        chosen[i] = {sites[i].first, false};
      }
      chosen[i].position = std::min(chosen[i].position, sites[i].first);
    }
    candidate.gathers[g] = EncodeGathers(sites, chosen);
    if (!rules_.Admit(sites, candidate.gathers[g], candidate.persistent)) {
      return false;
    }
  }
  return true;
}

/// The candidate of a draft, or nothing when it lies outside the space.
std::optional<Candidate> Moves::Finish(const Draft& draft) const {
  Candidate candidate;
  candidate.options = draft.options;
  candidate.order = draft.order;
  candidate.persistent = draft.persistent;
  candidate.gathers.resize(draft.choices.size());
  if (draft.options.stage == 3 && !Assemble(draft.choices, candidate)) {
    return std::nullopt;
  }
  return candidate;
}

Moves::Draft Moves::TakeApart(const Candidate& candidate) const {
  Draft draft{candidate.options, candidate.order, candidate.persistent, {}};
  for (std::size_t g = 0; g < candidate.gathers.size(); ++g) {
    draft.choices.push_back(candidate.options.stage == 3
                                ? DecodeGathers(sites_[candidate.order][g], candidate.gathers[g])
                                : GraphChoices());
  }
  return draft;
}

Candidate Moves::Apply(const Candidate& candidate, const Move& move, Random& random) const {
  constexpr int kDraws = 8;
  const Draft original = TakeApart(candidate);
  for (int draw = 0; draw < kDraws; ++draw) {
    Draft draft = original;
    if (!HasOptions(draft.options)) {
      ChangeOptions(draft, random);  // a start from outside
    }
    Change(draft, move, random);
    auto changed = Finish(draft);
    if (changed && *changed != candidate) {
      return *std::move(changed);
    }
  }
  return candidate;
}

Candidate Moves::Mutate(const Candidate& candidate, Random& random) const {
  const std::size_t changes = 1 + random.Below(3);
  Candidate changed = candidate;
  for (std::size_t i = 0; i < changes; ++i) {
    changed = Apply(changed, AllMoves()[random.Below(AllMoves().size())], random);
  }
  return changed;
}

Candidate Moves::Cross(const Candidate& a, const Candidate& b, Random& random) const {
  DCSIM_CHECK(a.options.stage == b.options.stage && a.order == b.order);
  Candidate child = random.Below(2) == 0 ? a : b;
  for (std::size_t g = 0; g < child.gathers.size(); ++g) {
    child.gathers[g] = random.Below(2) == 0 ? a.gathers[g] : b.gathers[g];
    const bool admitted = child.options.stage != 3 ||
                          rules_.Admit(sites_[child.order][g], child.gathers[g], child.persistent);
    if (!admitted) {
      return a;
    }
  }
  return child;
}

}  // namespace dcsim
