#include "model/cost/collective_models.h"

namespace dcsim {

CollectivePrice PriceOf(const CollectiveTraits& of, const Cluster& cluster) {
  std::optional<CollectivePrice> price;
  for (const CollectiveModel* model = kCollectiveModels.begin(); !price; ++model) {
    price = model->price(of, cluster);
  }
  return *price;
}

}  // namespace dcsim
