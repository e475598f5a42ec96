#include "sim/search/moves.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>

#include "model/base/error.h"

namespace dcsim {
namespace {

/// "model.layers.17.mlp.up_proj.weight" -> "model.layers.#.mlp.up_proj.weight".
std::string RoleName(const std::string& name) {
  std::string role;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      role += c;
    } else if (role.empty() || role.back() != '#') {
      role += '#';
    }
  }
  return role;
}

std::vector<std::uint32_t> Roles(const Graph& graph) {
  std::map<std::string, std::uint32_t> ids;
  std::vector<std::uint32_t> roles;
  for (const Param& param : graph.params) {
    const auto next = static_cast<std::uint32_t>(ids.size());
    roles.push_back(ids.emplace(RoleName(param.name), next).first->second);
  }
  return roles;
}

constexpr std::array<std::int64_t, 8> kAheads = {0, 1, 2, 4, 8, 16, 32, 64};

}  // namespace

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
      role_of_(Roles(problem.inputs.graph)) {
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

Moves::Selection Moves::Select(const std::vector<GatherSite>& sites, Random& random) const {
  Selection chosen;
  const auto one = static_cast<std::uint32_t>(random.Below(sites.size()));
  switch (random.Below(4)) {
    case 0:
      return {one};
    case 1: {
      const std::size_t length = 1 + random.Below(std::min<std::size_t>(sites.size(), 32));
      for (std::size_t i = one; i < std::min(sites.size(), one + length); ++i) {
        chosen.push_back(static_cast<std::uint32_t>(i));
      }
      return chosen;
    }
    case 2:
      for (std::uint32_t i = 0; i < sites.size(); ++i) {
        if (role_of_[sites[i].param.index()] == role_of_[sites[one].param.index()]) {
          chosen.push_back(i);
        }
      }
      return chosen;
    default:
      for (std::uint32_t i = 0; i < sites.size(); ++i) {
        chosen.push_back(i);
      }
      return chosen;
  }
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

void Moves::TogglePersistent(Draft& draft, Random& random) const {
  const std::size_t graph = random.Below(draft.choices.size());
  const auto& sites = sites_[draft.order][graph];
  if (sites.empty()) {
    return;
  }
  const Selection chosen = Select(sites, random);
  const std::uint8_t kept = random.Below(2) == 0 ? 0 : 1;
  for (const std::uint32_t i : chosen) {
    const ParamId id = sites[i].param;
    if (rules_.may_keep(id) && !rules_.must_keep(id)) {
      std::uint8_t& flag = draft.persistent[id.index()];
      flag = chosen.size() == 1 ? 1 - flag : kept;
    }
  }
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

void Moves::ChangeGathers(Draft& draft, std::size_t graph, Random& random) const {
  const auto& sites = sites_[draft.order][graph];
  if (sites.empty()) {
    return;
  }
  const Selection chosen = Select(sites, random);
  switch (random.Below(5)) {
    case 0:
    case 1:
      return Shift(draft, graph, chosen, random);
    case 2:
      return SetAhead(draft, graph, chosen, random);
    default:
      return Group(draft, graph, chosen, random);
  }
}

void Moves::Change(Draft& draft, Random& random) const {
  const bool gathers = draft.options.stage == 3 && !draft.choices.empty();
  const std::size_t kind = gathers ? random.Below(10) : 9;
  if (kind < 6) {
    ChangeGathers(draft, random.Below(draft.choices.size()), random);
  } else if (kind < 9) {
    TogglePersistent(draft, random);
  } else {
    ChangeOptions(draft, random);
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

Candidate Moves::Mutate(const Candidate& candidate, Random& random) const {
  constexpr int kDraws = 8;
  Draft original{candidate.options, candidate.order, candidate.persistent, {}};
  for (std::size_t g = 0; g < candidate.gathers.size(); ++g) {
    original.choices.push_back(candidate.options.stage == 3
                                   ? DecodeGathers(sites_[candidate.order][g], candidate.gathers[g])
                                   : GraphChoices());
  }
  for (int draw = 0; draw < kDraws; ++draw) {
    Draft draft = original;
    if (!HasOptions(draft.options)) {
      ChangeOptions(draft, random);  // a start from outside
    }
    const std::size_t changes = 1 + random.Below(3);
    for (std::size_t i = 0; i < changes; ++i) {
      Change(draft, random);
    }
    if (auto changed = Finish(draft)) {
      return *std::move(changed);
    }
  }
  return candidate;
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
