#pragma once

#include <vector>

#include "sim/search/candidate.h"
#include "sim/search/evaluator.h"

namespace dcsim {

struct Scored {
  Candidate candidate;
  Score score;
};

/// A total order of scored candidates, the better one first: what fits before what does not; then
/// by step time, then by reserved, then by allocated bytes, at last by hash. What does not fit, by
/// reserved bytes.
bool IsBetter(const Scored& a, const Scored& b);

/// The scored candidates that fit and that no other one beats in both step time and peak of
/// reserved bytes. Of several with the same two, the one that was inserted first stays.
class ParetoFront {
 public:
  /// Takes it in unless it is beaten; throws out what it beats. True when it was taken.
  bool Insert(const Scored& scored);

  /// By step time, shortest first: reserved bytes fall along the front.
  const std::vector<Scored>& members() const { return members_; }

 private:
  std::vector<Scored> members_;
};

}  // namespace dcsim
