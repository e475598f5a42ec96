#include "sim/search/strategy.h"

namespace dcsim {
namespace {

constexpr std::size_t kChildren = 128;  // of a generation

class Evolution : public SearchStrategy {
 public:
  Evolution(const Moves& moves, const ParetoFront& front, std::uint64_t seed)
      : moves_(moves),
        front_(front),
        random_(seed) {}

  std::string_view name() const override { return "evolution"; }

  std::vector<Candidate> Ask() override {
    std::vector<Candidate> children;
    const auto& members = front_.members();
    for (std::size_t i = 0; !members.empty() && i < kChildren; ++i) {
      const Candidate& mother = members[random_.Below(members.size())].candidate;
      const Candidate& father = members[random_.Below(members.size())].candidate;
      const bool crosses = mother.options.stage == father.options.stage &&
                           mother.order == father.order && random_.Below(2) == 0;
      const Candidate child = crosses ? moves_.Cross(mother, father, random_) : mother;
      children.push_back(moves_.Mutate(child, random_));
    }
    return children;
  }

  void Tell(std::span<const Scored>) override {}  // whoever owns the front has seen them

 private:
  const Moves& moves_;
  const ParetoFront& front_;
  Random random_;
};

}  // namespace

std::unique_ptr<SearchStrategy> MakeEvolution(const Moves& moves,
                                              const ParetoFront& front,
                                              std::uint64_t seed) {
  return std::make_unique<Evolution>(moves, front, seed);
}

}  // namespace dcsim
