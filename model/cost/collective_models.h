#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "model/cost/collective_tables.h"
#include "model/cost/collective_traits.h"
#include "model/cost/copy_gather_time.h"
#include "model/cost/one_rank_time.h"
#include "model/cost/ring_time.h"

namespace dcsim {

/// The time of some collectives.
struct CollectiveModel {
  std::string_view name;
  /// None of a collective that the model does not know. Throws Error for one that cannot run.
  std::optional<CollectivePrice> (*price)(const CollectiveTraits&, const Cluster&);
};

/// In the order in which they are asked; the last one knows all.
inline constexpr auto kCollectiveModels = std::to_array<CollectiveModel>({
    {"copy engines", CopyGatherPrice},
    {"one rank", OneRankPrice},
    {"table", TablePrice},
    {"tables of other ranks", OtherRanksPrice},
    {"ring", RingPrice},
});

/// By the first of CollectiveModels that knows it.
CollectivePrice PriceOf(const CollectiveTraits& of, const Cluster& cluster);

}  // namespace dcsim
