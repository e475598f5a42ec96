#include "model/cost/rate_fields.h"

namespace dcsim {

void ReadRateNumber(ObjectReader& object, std::string_view key, RateRange range, double& number) {
  if (range == RateRange::kShare) {
    ReadShare(object, key, number);
  } else if (range == RateRange::kPositive) {
    ReadPositive(object, key, number);
  } else if (object.Required(key, ReadNumber, number) && !(number >= 0)) {
    object.faults().Add(object.At(key), range == RateRange::kUpToOne ? "expected a share, 0 to 1"
                                                                     : "expected 0 or more");
  } else if (range == RateRange::kUpToOne && number > 1) {
    object.faults().Add(object.At(key), "expected a share, 0 to 1");
  }
}

}  // namespace dcsim
