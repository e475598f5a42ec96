#include "model/passes/deepcompile/gather_scheduler.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/passes/deepcompile/gather_residency.h"
#include "model/passes/deepcompile/path_finder.h"

namespace dcsim {
namespace {

constexpr Bytes kNoLimit(std::numeric_limits<std::int64_t>::max());

/// The keys by which DeepSpeed compares candidates.
using FreeKey = std::tuple<std::size_t, Bytes, Duration, std::string_view>;
using GatherKey = std::tuple<Bytes, FreeKey>;

/// Something that a round may commit: a gather with all that its release needs, or alone.
struct Choice {
  std::size_t gather = 0;
  bool until_free = false;
};

class GatherScheduler {
 public:
  GatherScheduler(const PassGraph& graph, DeepSpeedVersion version, std::optional<Bytes> budget)
      : graph_(graph),
        version_(version),
        budget_(budget),
        paths_(graph),
        residency_(graph) {
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].kind == PassNodeKind::kReduce) {
        reductions_.push_back({i, paths_.GathersBefore(i)});
      }
    }
    for (const std::uint32_t arg : graph.nodes.back().args) {
      const bool known = std::any_of(outputs_.begin(), outputs_.end(),
                                     [arg](const Goal& goal) { return goal.node == arg; });
      if (graph.nodes[arg].kind != PassNodeKind::kReduce && !known) {
        outputs_.push_back({arg, paths_.GathersBefore(arg)});
      }
    }
    for (std::size_t a = 0; a < paths_.gather_count(); ++a) {
      open_.push_back(a);
      needs_.push_back(paths_.GathersBefore(paths_.last_use(a)));
    }
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].kind == PassNodeKind::kPlaceholder) {
        Append(i);
      }
    }
  }

  GatherSchedule Run() {
    while (!open_.empty()) {
      Commit(Choose());
    }
    for (std::uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!paths_.is_scheduled(i)) {
        Append(i);
      }
    }
    return std::move(schedule_);
  }

 private:
  /// A reduction or an output, and how many gathers it still waits for.
  struct Goal {
    std::uint32_t node = 0;
    std::size_t needs = 0;
    bool done = false;
  };

  FreeKey FreeKeyOf(std::size_t a) const {
    return {paths_.path_gathers(a), paths_.gather_bytes(a), paths_.free_time(a),
            graph_.nodes[paths_.gather_node(a)].name};
  }
  GatherKey GatherKeyOf(std::size_t a) const { return {paths_.further_bytes(a), FreeKeyOf(a)}; }

  PathMemory MemoryUntilGather(std::size_t a) {
    return residency_.Simulate(paths_.UntilGather(a), kNoLimit);
  }
  PathMemory MemoryUntilFree(std::size_t a, Bytes limit) {
    return residency_.Simulate(paths_.GatherEvents(a), limit);
  }

  /// Whether a path fits; without a budget every one does.
  bool FitsUntilFree(std::size_t a) {
    return !budget_ || MemoryUntilFree(a, *budget_).peak <= *budget_;
  }
  bool FitsUntilGather(std::size_t a) { return !budget_ || MemoryUntilGather(a).peak <= *budget_; }

  /// The best of candidates that need equally many gathers, if one fits.
  std::optional<Choice> ChooseInTier(std::span<const std::size_t> tier) {
    if (version_ == DeepSpeedVersion::kRelease0171) {
      return ChooseUnsorted(tier);
    }
    std::optional<std::size_t> best;
    for (const std::size_t a : tier) {
      if (paths_.further_bytes(a) == Bytes(0) && FitsUntilFree(a) &&
          (!best || FreeKeyOf(a) < FreeKeyOf(*best))) {
        best = a;
      }
    }
    if (best) {
      return Choice{*best, true};
    }
    for (const std::size_t a : tier) {
      if (FitsUntilGather(a) && (!best || GatherKeyOf(a) < GatherKeyOf(*best))) {
        best = a;
      }
    }
    return best ? std::optional(Choice{*best, false}) : std::nullopt;
  }

  /// 0.17.1's choice: the time until free decides among all of the tier as soon as one of it needs
  /// no further gather.
  Choice ChooseUnsorted(std::span<const std::size_t> tier) const {
    const bool frees = std::any_of(tier.begin(), tier.end(), [this](std::size_t a) {
      return paths_.further_bytes(a) == Bytes(0);
    });
    const auto best = std::min_element(tier.begin(), tier.end(), [&](std::size_t a, std::size_t b) {
      return frees ? paths_.free_time(a) < paths_.free_time(b)
                   : paths_.further_bytes(a) < paths_.further_bytes(b);
    });
    return {*best, frees};
  }

  Choice Choose() {
    std::sort(open_.begin(), open_.end(), [this](std::size_t a, std::size_t b) {
      return std::pair(needs_[a], a) < std::pair(needs_[b], b);
    });
    for (std::size_t begin = 0; begin < open_.size();) {
      std::size_t end = begin;
      while (end < open_.size() && needs_[open_[end]] == needs_[open_[begin]]) {
        ++end;
      }
      if (const auto choice = ChooseInTier(std::span(open_).subspan(begin, end - begin))) {
        return *choice;
      }
      begin = end;
    }
    ++schedule_.overflows;
    return ChooseOverBudget();
  }

  /// What an over-budget choice is compared by. All peaks exceed the budget here, so the overage
  /// that DeepSpeed compares first orders them as the peak does.
  struct OverBudget {
    PathMemory memory;
    Choice choice;
  };

  bool IsBetter(const OverBudget& a, const OverBudget& b) const {
    return std::tuple(a.memory.peak, a.memory.live, GatherKeyOf(a.choice.gather),
                      a.choice.until_free) < std::tuple(b.memory.peak, b.memory.live,
                                                        GatherKeyOf(b.choice.gather),
                                                        b.choice.until_free);
  }

  /// The path with the lowest peak. A path until the release begins with the gather alone, so it is
  /// worth a look only where that does not exceed the best peak already.
  Choice ChooseOverBudget() {
    std::optional<OverBudget> best;
    const auto offer = [&](const OverBudget& option) {
      best = !best || IsBetter(option, *best) ? option : *best;
    };
    for (const std::size_t a : open_) {
      const bool frees = paths_.further_bytes(a) == Bytes(0);
      offer({frees ? MemoryUntilFree(a, kNoLimit) : MemoryUntilGather(a), {a, frees}});
    }
    for (const std::size_t a : open_) {
      if (paths_.further_bytes(a) > Bytes(0) && MemoryUntilGather(a).peak <= best->memory.peak) {
        const PathMemory memory = MemoryUntilFree(a, best->memory.peak);
        if (memory.peak <= best->memory.peak) {
          offer({memory, {a, true}});
        }
      }
    }
    return best->choice;
  }

  void Append(std::uint32_t node) {
    schedule_.order.push_back(node);
    paths_.MarkScheduled(node);
    if (budget_) {
      residency_.Apply(node);
    }
  }

  void AppendAll(const std::vector<std::uint32_t>& nodes) {
    for (const std::uint32_t node : nodes) {
      Append(node);
    }
  }

  /// Up to 0.19.6 only the chosen gather counts as issued; in 0.19.8 every one of the path.
  std::vector<std::size_t> IssuedGathers(const Choice& choice,
                                         const std::vector<std::uint32_t>& path) const {
    if (version_ < DeepSpeedVersion::kRelease0198) {
      return {choice.gather};
    }
    std::vector<std::size_t> issued;
    for (const std::uint32_t node : path) {
      if (graph_.nodes[node].kind == PassNodeKind::kGather) {
        issued.push_back(paths_.gather_of(node));
      }
    }
    return issued;
  }

  void Commit(const Choice& choice) {
    const auto path =
        choice.until_free ? paths_.UntilFree(choice.gather) : paths_.UntilGather(choice.gather);
    AppendAll(path);
    const auto issued = IssuedGathers(choice, path);
    for (const std::size_t g : issued) {
      std::erase(open_, g);
      paths_.ForEachThatNeeds(g, [this](std::size_t a) { --needs_[a]; });
    }
    FinishGoals(reductions_, issued);
    FinishGoals(outputs_, issued);
  }

  /// Schedules what waits for no gather any more: up to 0.19.6 only what waited until now.
  void FinishGoals(std::vector<Goal>& goals, const std::vector<std::size_t>& issued) {
    std::vector<std::uint32_t> ready;
    for (Goal& goal : goals) {
      const std::size_t before = goal.needs;
      for (const std::size_t g : issued) {
        goal.needs -= paths_.Needs(goal.node, g) ? 1U : 0U;
      }
      const bool waited = version_ == DeepSpeedVersion::kRelease0198 || goal.needs < before;
      if (!goal.done && goal.needs == 0 && waited) {
        goal.done = true;
        ready.push_back(goal.node);
      }
    }
    for (const std::uint32_t node : ready) {
      AppendAll(paths_.Requirements(node));
    }
  }

  const PassGraph& graph_;
  DeepSpeedVersion version_;
  std::optional<Bytes> budget_;
  PathFinder paths_;
  GatherResidency residency_;
  std::vector<std::size_t> open_;   // gathers not issued, as DeepSpeed counts them
  std::vector<std::size_t> needs_;  // by gather: open ones up to its last use, itself included
  std::vector<Goal> reductions_;
  std::vector<Goal> outputs_;
  GatherSchedule schedule_;
};

}  // namespace

GatherSchedule ScheduleGathers(const PassGraph& graph,
                               DeepSpeedVersion version,
                               std::optional<Bytes> budget) {
  const bool knows_budget = version == DeepSpeedVersion::kRelease0198;
  return GatherScheduler(graph, version, knows_budget ? budget : std::nullopt).Run();
}

}  // namespace dcsim
