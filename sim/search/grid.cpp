#include <algorithm>
#include <array>

#include "model/graph/sharding.h"
#include "sim/search/persistence.h"
#include "sim/search/strategy.h"

namespace dcsim {
namespace {

/// A fixed list of candidates.
class ListStrategy : public SearchStrategy {
 public:
  ListStrategy(std::string_view name, std::vector<Candidate> candidates)
      : name_(name),
        candidates_(std::move(candidates)) {}

  std::string_view name() const override { return name_; }
  std::vector<Candidate> Ask() override {
    constexpr std::size_t kBatch = 64;
    const std::size_t count = std::min(kBatch, candidates_.size() - next_);
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(next_);
    next_ += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  void Tell(std::span<const Scored>) override {}

 private:
  std::string_view name_;
  std::vector<Candidate> candidates_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeGrid(const Moves& moves) {
  constexpr std::array<std::int64_t, 8> kAheads = {0, 1, 2, 4, 8, 16, 32, 64};
  const std::size_t params = moves.param_count();
  const std::vector<std::uint8_t> none(params, 0);
  const std::vector<std::uint8_t> all(params, 1);
  std::vector<Candidate> candidates;
  for (const ScheduleOptions& options : moves.space().options) {
    if (options.stage != 3) {
      candidates.push_back(moves.Uniform(options, 0, 1, none));
      continue;
    }
    for (const std::int64_t ahead : kAheads) {
      for (const std::size_t in_launch : {1U, 4U}) {
        candidates.push_back(moves.Uniform(options, ahead, in_launch, none));
        candidates.push_back(moves.Uniform(options, ahead, in_launch, all));
      }
    }
  }
  return std::make_unique<ListStrategy>("grid", std::move(candidates));
}

std::unique_ptr<SearchStrategy> MakePersistence(const Moves& moves,
                                                const SearchProblem& problem,
                                                const std::vector<Scored>& starts,
                                                Bytes limit) {
  constexpr std::int64_t kParts = 16;
  std::vector<Candidate> candidates;
  for (const Scored& start : starts) {
    const Bytes left = limit - start.score.peak_reserved;
    const ScheduleOptions& options = start.candidate.options;
    if (options.stage != 3 || !start.score.fits() || !moves.HasOptions(options)) {
      continue;
    }
    std::vector<KeepItem> items;
    for (const KeepItem& item : FindKeepItems(problem, start.candidate.options)) {
      const bool free = start.candidate.persistent[item.param.index()] == 0;
      if (free && moves.rules().may_keep(item.param)) {
        items.push_back(item);
      }
    }
    for (std::int64_t part = 1; part <= kParts; ++part) {
      std::vector<std::uint8_t> persistent = start.candidate.persistent;
      for (const ParamId id : ChooseKept(items, Bytes(left.count() / kParts * part)).params) {
        persistent[id.index()] = 1;
      }
      candidates.push_back(moves.WithPersistent(start.candidate, persistent));
    }
  }
  return std::make_unique<ListStrategy>("persistence", std::move(candidates));
}

}  // namespace dcsim
