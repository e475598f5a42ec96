#include "sim/search/persistence.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "model/graph/param_shifts.h"
#include "sim/search/gather_task.h"

namespace dcsim {
namespace {

/// Items of the same bytes and time.
struct KeepGroup {
  std::int64_t bytes = 0;
  std::int64_t saved = 0;
  std::vector<ParamId> params;
};

/// Most time by byte first; a is ahead of b when a.saved / a.bytes > b.saved / b.bytes.
std::vector<KeepGroup> GroupItems(std::vector<KeepItem> items) {
  std::stable_sort(items.begin(), items.end(), [](const KeepItem& a, const KeepItem& b) {
    const double left = static_cast<double>(a.saved.ns()) * static_cast<double>(b.bytes.count());
    const double right = static_cast<double>(b.saved.ns()) * static_cast<double>(a.bytes.count());
    return left != right ? left > right
                         : std::tuple(a.bytes, a.param) < std::tuple(b.bytes, b.param);
  });
  std::vector<KeepGroup> groups;
  for (const KeepItem& item : items) {
    if (groups.empty() || groups.back().bytes != item.bytes.count() ||
        groups.back().saved != item.saved.ns()) {
      groups.push_back({item.bytes.count(), item.saved.ns(), {}});
    }
    groups.back().params.push_back(item.param);
  }
  return groups;
}

/// Depth first over how many of each group are taken.
class Branches {
 public:
  Branches(const std::vector<KeepGroup>& groups, std::uint64_t most)
      : groups_(groups),
        left_(most),
        counts_(groups.size()) {}

  void Run(std::int64_t budget) {
    bound_ = Relaxed(0, budget);
    Branch(0, budget, 0);
    if (left_ > 0) {
      bound_ = best_;  // nothing was left out
    }
  }

  std::int64_t best() const { return best_; }
  std::int64_t bound() const { return bound_; }
  const std::vector<std::size_t>& best_counts() const { return best_counts_; }

 private:
  /// The relaxation's value of the groups from `group` on, rounded down: values are whole.
  std::int64_t Relaxed(std::size_t group, std::int64_t budget) const {
    std::int64_t value = 0;
    for (; group < groups_.size() && budget > 0; ++group) {
      const KeepGroup& each = groups_[group];
      const auto count = static_cast<std::int64_t>(each.params.size());
      const std::int64_t whole = std::min(count, budget / each.bytes);
      value += whole * each.saved;
      budget -= whole * each.bytes;
      if (whole < count) {
        const double part = static_cast<double>(budget) / static_cast<double>(each.bytes);
        return value + static_cast<std::int64_t>(std::ceil(part * static_cast<double>(each.saved)));
      }
    }
    return value;
  }

  void Branch(std::size_t group, std::int64_t budget, std::int64_t value) {
    if (value > best_ || best_counts_.empty()) {
      best_ = value;
      best_counts_ = counts_;
    }
    if (left_ == 0 || group == groups_.size() || value + Relaxed(group, budget) <= best_) {
      return;
    }
    --left_;
    const KeepGroup& each = groups_[group];
    const std::int64_t most =
        std::min(static_cast<std::int64_t>(each.params.size()), budget / each.bytes);
    for (std::int64_t count = most; count >= 0; --count) {
      counts_[group] = static_cast<std::size_t>(count);
      Branch(group + 1, budget - count * each.bytes, value + count * each.saved);
    }
    counts_[group] = 0;
  }

  const std::vector<KeepGroup>& groups_;
  std::uint64_t left_;
  std::vector<std::size_t> counts_;
  std::vector<std::size_t> best_counts_;
  std::int64_t best_ = 0;
  std::int64_t bound_ = 0;
};

}  // namespace

KeepChoice ChooseKept(const std::vector<KeepItem>& items,
                      Bytes budget,
                      std::uint64_t most_branches) {
  const auto groups = GroupItems(items);
  Branches branches(groups, most_branches);
  branches.Run(std::max<std::int64_t>(0, budget.count()));
  KeepChoice choice;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t count = branches.best_counts()[g];
    choice.params.insert(choice.params.end(), groups[g].params.begin(),
                         groups[g].params.begin() + static_cast<std::ptrdiff_t>(count));
    choice.bytes += Bytes(groups[g].bytes) * static_cast<std::int64_t>(count);
  }
  std::sort(choice.params.begin(), choice.params.end());
  choice.saved = Duration::FromNs(branches.best());
  choice.bound = Duration::FromNs(branches.bound());
  return choice;
}

std::vector<KeepItem> FindKeepItems(const SearchProblem& problem, const ScheduleOptions& options) {
  std::vector<std::int64_t> gathers(problem.inputs.graph.params.size());
  std::vector<Bytes> bytes(gathers.size());
  for (const auto& sites : FindGatherSites(problem, 0)) {
    for (const GatherSite& site : sites) {
      gathers[site.param.index()] += options.gradient_accumulation_steps;
      bytes[site.param.index()] = site.gathered;
    }
  }
  const std::vector<bool> shifted = ShiftedShards(problem.inputs.graph, options, problem.ranks);
  std::vector<KeepItem> items;
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    if (gathers[i] < 2 || bytes[i] == Bytes(0)) {
      continue;
    }
    const CollectivePart part{bytes[i], Bytes(0), shifted[i]};
    const GpuTask one =
        GatherTask(problem.inputs.cluster, options.gather_engine, {&part, 1}, problem.ranks);
    items.push_back({ParamId(i), bytes[i], Duration::FromNs(one.device) * (gathers[i] - 1)});
  }
  return items;
}

}  // namespace dcsim
