#include "model/cost/profiled_launch.h"

#include <utility>
#include <vector>

#include "model/base/median.h"
#include "model/base/scaled.h"
#include "model/cost/kernel_traits.h"

namespace dcsim {

Duration ProfiledLaunch(const Graph& graph, const Profile& profile) {
  std::vector<Duration> launches;
  for (const OpProfile& op : profile.ops) {
    if (!op.kernels.empty()) {
      launches.push_back(Scaled(op.host_time, 1 / TraitsOf(graph, op.op).launches.host));
    }
  }
  return Median(std::move(launches));
}

}  // namespace dcsim
