#include <algorithm>

#include "sim/search/strategy.h"

namespace dcsim {
namespace {

constexpr std::size_t kBeam = 6;
constexpr std::size_t kChildren = 96;  // of a round
constexpr int kPatience = 12;          // rounds without a better best
constexpr int kShakes = 6;             // changes of a shaken best

class LocalSearch : public SearchStrategy {
 public:
  LocalSearch(const Moves& moves, std::vector<Scored> starts, std::uint64_t seed)
      : moves_(moves),
        starts_(std::move(starts)),
        random_(seed) {
    std::sort(starts_.begin(), starts_.end(), IsBetter);
    if (!starts_.empty()) {
      best_ = starts_.front();
      beam_ = {starts_.front()};
    }
  }

  std::string_view name() const override { return "local search"; }

  std::vector<Candidate> Ask() override {
    std::vector<Candidate> children;
    for (std::size_t i = 0; !beam_.empty() && i < kChildren; ++i) {
      children.push_back(moves_.Mutate(beam_[i % beam_.size()].candidate, random_));
    }
    return children;
  }

  void Tell(std::span<const Scored> scored) override {
    const Scored before = beam_.front();
    beam_.insert(beam_.end(), scored.begin(), scored.end());
    std::sort(beam_.begin(), beam_.end(), IsBetter);
    const auto same = [](const Scored& a, const Scored& b) { return a.score == b.score; };
    beam_.erase(std::unique(beam_.begin(), beam_.end(), same), beam_.end());
    beam_.resize(std::min(beam_.size(), kBeam));
    rounds_ = IsBetter(beam_.front(), before) ? 0 : rounds_ + 1;
    if (IsBetter(beam_.front(), best_)) {
      best_ = beam_.front();
    }
    if (rounds_ > kPatience) {
      Restart();
    }
  }

 private:
  /// Starts and shaken bests in turn; a shaken one counts as it is once its children are known.
  void Restart() {
    rounds_ = 0;
    ++restarts_;
    if (restarts_ % 2 == 0 && restarts_ / 2 < starts_.size()) {
      beam_ = {starts_[restarts_ / 2]};
      return;
    }
    Candidate shaken = best_.candidate;
    for (int i = 0; i < kShakes; ++i) {
      shaken = moves_.Mutate(shaken, random_);
    }
    Score unknown;
    unknown.verdict = Verdict::kOverLimit;
    unknown.peak_reserved = kMaxCapacity;
    beam_ = {{std::move(shaken), unknown}};
  }

  const Moves& moves_;
  std::vector<Scored> starts_;
  Random random_;
  Scored best_;
  std::vector<Scored> beam_;
  int rounds_ = 0;
  std::size_t restarts_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeLocalSearch(const Moves& moves,
                                                std::vector<Scored> starts,
                                                std::uint64_t seed) {
  return std::make_unique<LocalSearch>(moves, std::move(starts), seed);
}

}  // namespace dcsim
