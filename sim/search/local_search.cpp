#include <algorithm>

#include "sim/search/strategy.h"

namespace dcsim {
namespace {

// Chosen on qwen3-8b with 50 and 137 GiB (docs/design/search.md, Measured).
constexpr std::size_t kChains = 3;
constexpr std::size_t kTries = 4;         // changes of each chain in a round
constexpr std::size_t kSecondChange = 8;  // one in so many tries is of two changes
constexpr int kExchange = 40;             // rounds after which the best chain replaces the worst
constexpr int kPatience = 400;            // rounds in which no chain gets ahead of the best one
constexpr int kShakes = 6;                // changes of a shaken best

/// How often each kind of move has made something better lately. Whole numbers: the same draws on
/// every machine.
class MoveOdds {
 public:
  MoveOdds() : counts_(AllMoves().size()) {}

  std::size_t Draw(Random& random) const {
    std::size_t sum = 0;
    for (const Counts& counts : counts_) {
      sum += counts.Weight();
    }
    std::size_t at = random.Below(sum);
    std::size_t move = 0;
    while (at >= counts_[move].Weight()) {
      at -= counts_[move++].Weight();
    }
    return move;
  }

  void Note(std::size_t move, bool better) {
    counts_[move].tried += kOne;
    counts_[move].better += better ? kOne : 0;
  }

  /// What was long ago counts less.
  void EndRound() {
    constexpr std::int64_t kForget = 200;
    for (Counts& counts : counts_) {
      counts.tried -= counts.tried / kForget;
      counts.better -= counts.better / kForget;
    }
  }

 private:
  static constexpr std::int64_t kOne = 1000;

  struct Counts {
    std::int64_t tried = 0;
    std::int64_t better = 0;

    /// The share that made something better, per mille, of some that were not made included; and
    /// at least 10, so that no kind is given up.
    std::size_t Weight() const {
      constexpr std::int64_t kLeast = 10;
      return static_cast<std::size_t>(kLeast + 1000 * (better + kOne / 2) / (tried + 5 * kOne));
    }
  };

  std::vector<Counts> counts_;
};

class LocalSearch : public SearchStrategy {
 public:
  LocalSearch(const Moves& moves, std::vector<Scored> starts, std::uint64_t seed)
      : moves_(moves),
        starts_(std::move(starts)),
        random_(seed) {
    std::sort(starts_.begin(), starts_.end(), IsBetter);
    TakeStarts();
    if (!chains_.empty()) {
      best_ = chains_.front();
      leader_ = best_;
    }
  }

  std::string_view name() const override { return "local search"; }

  std::vector<Candidate> Ask() override {
    std::vector<Candidate> children;
    made_by_.clear();
    for (const Scored& chain : chains_) {
      for (std::size_t i = 0; i < kTries; ++i) {
        made_by_.push_back(odds_.Draw(random_));
        Candidate child = moves_.Apply(chain.candidate, AllMoves()[made_by_.back()], random_);
        if (random_.Below(kSecondChange) == 0) {
          child = moves_.Apply(child, AllMoves()[odds_.Draw(random_)], random_);
        }
        children.push_back(std::move(child));
      }
    }
    return children;
  }

  void Tell(std::span<const Scored> scored) override {
    for (std::size_t i = 0; i < scored.size(); ++i) {
      odds_.Note(made_by_[i], IsFaster(scored[i], chains_[i / kTries]));
    }
    odds_.EndRound();
    for (std::size_t c = 0; c < chains_.size(); ++c) {
      Advance(chains_[c], scored.subspan(c * kTries, kTries));
    }
    std::stable_sort(chains_.begin(), chains_.end(), IsBetter);
    ++rounds_;
    if (rounds_ % kExchange == 0) {
      chains_.back() = chains_.front();
    }
    patience_ = IsFaster(chains_.front(), leader_) ? 0 : patience_ + 1;
    if (IsBetter(chains_.front(), leader_)) {
      leader_ = chains_.front();
    }
    if (IsBetter(leader_, best_)) {
      best_ = leader_;
    }
    if (patience_ > kPatience) {
      Restart();
    }
  }

 private:
  static bool IsFaster(const Scored& a, const Scored& b) {
    return a.score.fits() && (!b.score.fits() || a.score.step_time < b.score.step_time);
  }

  /// To the best of its children, unless that is slower: on a plateau a chain keeps moving.
  static void Advance(Scored& chain, std::span<const Scored> children) {
    const Scored* best = nullptr;
    for (const Scored& child : children) {
      const bool changed = !(child.candidate == chain.candidate);
      best = changed && (best == nullptr || IsBetter(child, *best)) ? &child : best;
    }
    if (best == nullptr) {
      return;
    }
    const bool same_time =
        best->score.fits() && chain.score.fits() && best->score.step_time == chain.score.step_time;
    if (same_time || IsBetter(*best, chain)) {
      chain = *best;
    }
  }

  void TakeStarts() {
    chains_.clear();
    for (std::size_t i = 0; i < kChains && next_start_ < starts_.size(); ++i) {
      chains_.push_back(starts_[next_start_++]);
    }
  }

  /// The next starts and shaken bests in turn; a shaken one counts as it is once its children are
  /// known.
  void Restart() {
    patience_ = 0;
    ++restarts_;
    if (restarts_ % 2 == 0 && next_start_ < starts_.size()) {
      TakeStarts();
    } else {
      Score unknown;
      unknown.verdict = Verdict::kOverLimit;
      unknown.peak_reserved = kMaxCapacity;
      chains_.clear();
      for (std::size_t c = 0; c < kChains; ++c) {
        Candidate shaken = best_.candidate;
        for (int i = 0; i < kShakes; ++i) {
          shaken = moves_.Apply(shaken, AllMoves()[random_.Below(AllMoves().size())], random_);
        }
        chains_.push_back({std::move(shaken), unknown});
      }
    }
    leader_ = chains_.front();
  }

  const Moves& moves_;
  std::vector<Scored> starts_;  // best first
  Random random_;
  MoveOdds odds_;
  std::vector<Scored> chains_;        // best first
  std::vector<std::size_t> made_by_;  // by child: its first move
  Scored best_;
  Scored leader_;  // of the chains since they were started
  std::size_t next_start_ = 0;
  int rounds_ = 0;
  int patience_ = 0;
  int restarts_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeLocalSearch(const Moves& moves,
                                                std::vector<Scored> starts,
                                                std::uint64_t seed) {
  return std::make_unique<LocalSearch>(moves, std::move(starts), seed);
}

}  // namespace dcsim
