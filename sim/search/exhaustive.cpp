#include <algorithm>

#include "model/base/error.h"
#include "sim/search/strategy.h"

namespace dcsim {
namespace {

/// A digit of the odometer that walks through a space.
struct Digit {
  enum class Kind : std::uint8_t { kPersistent, kSlot, kJoined } kind;
  std::size_t graph = 0;
  std::size_t index = 0;  // param, or site of the graph
  std::size_t values = 2;
};

class Exhaustive : public SearchStrategy {
 public:
  Exhaustive(const Moves& moves, const SearchProblem& problem, std::uint64_t most)
      : moves_(moves),
        problem_(problem) {
    FindDigits();
    std::uint64_t count = moves.space().options.size();
    for (const Digit& digit : digits_) {
      if (count > most / digit.values) {
        throw Error("the space has more than " + std::to_string(most) +
                    " schedules: too many to try every one");
      }
      count *= digit.values;
    }
    values_.resize(digits_.size());
  }

  std::string_view name() const override { return "exhaustive"; }

  std::vector<Candidate> Ask() override {
    constexpr std::size_t kBatch = 512;
    std::vector<Candidate> batch;
    while (option_ < moves_.space().options.size() && batch.size() < kBatch) {
      AddCurrent(batch);
      Advance();
    }
    return batch;
  }
  void Tell(std::span<const Scored>) override {}

 private:
  void FindDigits() {
    const GatherRules& rules = moves_.rules();
    for (std::size_t i = 0; i < problem_.inputs.graph.params.size(); ++i) {
      if (rules.may_keep(ParamId(i)) && !rules.must_keep(ParamId(i))) {
        digits_.push_back({Digit::Kind::kPersistent, 0, i, 2});
      }
    }
    const auto most_ahead = static_cast<std::size_t>(rules.space().most_ahead);
    for (std::size_t g = 0; g < moves_.sites(0).size(); ++g) {
      for (std::size_t i = 0; i < moves_.sites(0)[g].size(); ++i) {
        digits_.push_back({Digit::Kind::kSlot, g, i, std::min(i, most_ahead) + 1});
        if (i > 0 && rules.space().most_in_launch > 1) {
          digits_.push_back({Digit::Kind::kJoined, g, i, 2});
        }
      }
    }
  }

  void Advance() {
    const bool gathers = moves_.space().options[option_].stage == 3;
    for (std::size_t i = 0; gathers && i < digits_.size(); ++i) {
      if (++values_[i] < digits_[i].values) {
        return;
      }
      values_[i] = 0;
    }
    ++option_;
  }

  void AddCurrent(std::vector<Candidate>& batch) const {
    const ScheduleOptions& options = moves_.space().options[option_];
    Candidate candidate = moves_.Uniform(options, 0, 1, {});
    if (options.stage != 3) {
      batch.push_back(std::move(candidate));
      return;
    }
    std::vector<GraphChoices> choices;
    for (std::size_t g = 0; g < candidate.gathers.size(); ++g) {
      choices.push_back(DecodeGathers(moves_.sites(0)[g], candidate.gathers[g]));
    }
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      const Digit& digit = digits_[i];
      if (digit.kind == Digit::Kind::kPersistent) {
        candidate.persistent[digit.index] = static_cast<std::uint8_t>(values_[i]);
      } else if (digit.kind == Digit::Kind::kSlot) {
        choices[digit.graph][digit.index].position =
            moves_.sites(0)[digit.graph][digit.index - values_[i]].first;
      } else {
        choices[digit.graph][digit.index].joined = values_[i] == 1;
      }
    }
    if (moves_.Assemble(choices, candidate)) {
      batch.push_back(std::move(candidate));
    }
  }

  const Moves& moves_;
  const SearchProblem& problem_;
  std::vector<Digit> digits_;
  std::vector<std::size_t> values_;
  std::size_t option_ = 0;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeExhaustive(const Moves& moves,
                                               const SearchProblem& problem,
                                               std::uint64_t most) {
  return std::make_unique<Exhaustive>(moves, problem, most);
}

}  // namespace dcsim
