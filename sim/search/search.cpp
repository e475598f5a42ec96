#include "sim/search/search.h"

#include <algorithm>

#include "sim/search/useful_options.h"

namespace dcsim {
namespace {

constexpr std::uint64_t kMostExhaustive = 10'000'000;

class Driver {
 public:
  Driver(Evaluator& evaluator, const SearchSettings& settings)
      : evaluator_(evaluator),
        settings_(settings) {}

  /// Runs a strategy until it is done or `until` schedules have been evaluated by all.
  /// Returns the best few of what it found, best first.
  std::vector<Scored> Run(SearchStrategy& strategy, std::uint64_t until) {
    std::vector<Scored> best;
    StrategyReport report{std::string(strategy.name()), 0, 0};
    const std::uint64_t before = evaluator_.evaluated();
    // A strategy that finds nothing new any more would never use its budget up.
    for (int idle = 0; evaluator_.evaluated() < until && idle < kMostIdle;) {
      if (settings_.should_stop()) {
        result_.stopped = true;
        break;
      }
      const std::vector<Candidate> asked = strategy.Ask();
      if (asked.empty()) {
        break;
      }
      const std::uint64_t known = evaluator_.evaluated();
      const std::vector<Scored> scored = Evaluate(asked, report);
      idle = evaluator_.evaluated() == known ? idle + 1 : 0;
      strategy.Tell(scored);
      Keep(scored, best);
      settings_.on_progress({strategy.name(), evaluator_.evaluated(), settings_.budget,
                             front_.members().empty() ? nullptr : &front_.members().front()});
    }
    report.evaluated = evaluator_.evaluated() - before;
    result_.strategies.push_back(report);
    return best;
  }

  ParetoFront& front() { return front_; }
  bool stopped() const { return result_.stopped; }

  /// Goes on with nothing found.
  void Forget() {
    front_ = ParetoFront();
    least_.reset();
  }

  SearchResult Finish(bool complete) {
    result_.front = front_.members();
    if (result_.front.empty()) {
      result_.least = least_;
    }
    result_.evaluated = evaluator_.evaluated();
    result_.folded = evaluator_.folded();
    result_.complete = complete && !result_.stopped;
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kKept = 64;
  static constexpr int kMostIdle = 50;

  std::vector<Scored> Evaluate(const std::vector<Candidate>& asked, StrategyReport& report) {
    const std::vector<Score> scores = evaluator_.Evaluate(asked);
    std::vector<Scored> scored;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      scored.push_back({asked[i], scores[i]});
      const Duration before = front_.members().empty() ? Duration::FromNs(INT64_MAX)
                                                       : front_.members().front().score.step_time;
      front_.Insert(scored.back());
      if (!scores[i].fits() && (!least_ || IsBetter(scored.back(), *least_))) {
        least_ = scored.back();
      }
      report.improved += scores[i].fits() && scores[i].step_time < before ? 1U : 0U;
    }
    return scored;
  }

  void Keep(const std::vector<Scored>& scored, std::vector<Scored>& best) const {
    best.insert(best.end(), scored.begin(), scored.end());
    std::sort(best.begin(), best.end(), IsBetter);
    const auto same = [](const Scored& a, const Scored& b) { return a.score == b.score; };
    best.erase(std::unique(best.begin(), best.end(), same), best.end());
    best.resize(std::min(best.size(), kKept));
  }

  Evaluator& evaluator_;
  const SearchSettings& settings_;
  ParetoFront front_;
  std::optional<Scored> least_;
  SearchResult result_;
};

/// The best scored candidate of each combination of options, best first, at most `most`.
std::vector<Scored> BestByOptions(const std::vector<Scored>& scored, std::size_t most) {
  std::vector<Scored> best;
  for (const Scored& each : scored) {
    const bool known = std::any_of(best.begin(), best.end(), [&each](const Scored& other) {
      return other.candidate.options == each.candidate.options;
    });
    if (!known && best.size() < most) {
      best.push_back(each);
    }
  }
  return best;
}

std::vector<Scored> Joined(std::vector<Scored> a, const std::vector<Scored>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end(), IsBetter);
  return a;
}

/// The starts that the caller gave, as a strategy.
class Starts : public SearchStrategy {
 public:
  explicit Starts(const std::vector<Candidate>& starts) : starts_(starts) {}
  std::string_view name() const override { return "starts"; }
  std::vector<Candidate> Ask() override { return std::move(starts_); }
  void Tell(std::span<const Scored>) override { starts_.clear(); }

 private:
  std::vector<Candidate> starts_;
};

/// Of what the grid and persistence leave of the budget, local search gets this share, evolution
/// the rest.
constexpr double kLocalShare = 0.8;

/// Whether the space holds schedules that release in this way.
bool Releases(const SearchSpace& space, ReleaseMode mode) {
  return std::any_of(space.options.begin(), space.options.end(),
                     [mode](const ScheduleOptions& options) { return options.release == mode; });
}

/// Sets the release of all options; what is then the same stays once.
void ReleaseAll(SearchSpace& space, ReleaseMode mode) {
  std::vector<ScheduleOptions> kept;
  for (ScheduleOptions options : space.options) {
    options.release = mode;
    if (std::find(kept.begin(), kept.end(), options) == kept.end()) {
      kept.push_back(options);
    }
  }
  space.options = std::move(kept);
}

/// The members of a front as the space has them: with each release that it lists for their options.
/// What the space does not hold, a start, stays as it is.
class Releasings : public SearchStrategy {
 public:
  Releasings(const std::vector<Scored>& front, const SearchSpace& space) {
    for (const Scored& scored : front) {
      AddAll(scored.candidate, space);
    }
  }
  std::string_view name() const override { return "record_stream"; }
  std::vector<Candidate> Ask() override { return std::move(candidates_); }
  void Tell(std::span<const Scored>) override { candidates_.clear(); }

 private:
  void AddAll(Candidate candidate, const SearchSpace& space) {
    bool held = false;
    for (const ScheduleOptions& options : space.options) {
      ScheduleOptions alike = candidate.options;
      alike.release = options.release;
      if (alike == options) {
        candidates_.push_back(candidate);
        candidates_.back().options = options;
        held = true;
      }
    }
    if (!held) {
      candidates_.push_back(std::move(candidate));
    }
  }

  std::vector<Candidate> candidates_;
};

SearchResult SearchByDefault(Evaluator& evaluator,
                             const Moves& moves,
                             const SearchSpace& space,
                             const SearchSettings& settings) {
  constexpr std::size_t kPersistenceStarts = 12;
  constexpr std::size_t kLocalStarts = 16;
  Driver driver(evaluator, settings);
  Starts starts(settings.starts);
  std::vector<Scored> found = driver.Run(starts, settings.budget);
  found = Joined(found, driver.Run(*MakeGrid(moves), settings.budget));
  const auto persistence =
      MakePersistence(moves, evaluator.problem(), BestByOptions(found, kPersistenceStarts),
                      evaluator.memory_limit());
  found = Joined(found, driver.Run(*persistence, settings.budget));
  const std::uint64_t used = std::min(evaluator.evaluated(), settings.budget);
  const auto until =
      used + static_cast<std::uint64_t>(kLocalShare * static_cast<double>(settings.budget - used));
  found.resize(std::min(found.size(), kLocalStarts));
  driver.Run(*MakeLocalSearch(moves, found, settings.seed), until);
  driver.Run(*MakeEvolution(moves, driver.front(), settings.seed + 1), settings.budget);
  if (Releases(space, ReleaseMode::kRecordStream)) {
    Releasings releasings(driver.front().members(), space);
    driver.Forget();
    driver.Run(releasings, UINT64_MAX);
  }
  return driver.Finish(/*complete=*/false);
}

}  // namespace

SearchResult Search(Evaluator& evaluator,
                    const SearchSpace& space,
                    const SearchSettings& settings) {
  SearchSpace decided = space;
  const SearchProblem& problem = evaluator.problem();
  LeaveOutUselessFusing(problem.inputs.graph, decided);
  DecideAlignment(problem.inputs.graph, problem.ranks, decided);
  if (settings.method == SearchMethod::kDefault) {
    SearchSpace timed = decided;
    if (Releases(decided, ReleaseMode::kRecordStream)) {
      ReleaseAll(timed, ReleaseMode::kEventOrdered);
    }
    return SearchByDefault(evaluator, Moves(problem, timed), decided, settings);
  }
  const Moves moves(problem, decided);
  Driver driver(evaluator, settings);
  driver.Run(*MakeExhaustive(moves, problem, kMostExhaustive), kMostExhaustive);
  return driver.Finish(/*complete=*/true);
}

}  // namespace dcsim
