#include "model/cost/profiled_launch.h"

#include <algorithm>
#include <vector>

#include "model/base/scaled.h"
#include "model/cost/op_launches.h"

namespace dcsim {

Duration ProfiledLaunch(const Graph& graph, const Profile& profile) {
  std::vector<Duration> launches;
  for (const OpProfile& op : profile.ops) {
    if (!op.kernels.empty()) {
      launches.push_back(Scaled(op.host_time, 1 / LaunchesOf(graph, op.op).host));
    }
  }
  if (launches.empty()) {
    return Duration();
  }
  const auto middle = launches.begin() + static_cast<std::ptrdiff_t>(launches.size() / 2);
  std::nth_element(launches.begin(), middle, launches.end());
  return *middle;
}

}  // namespace dcsim
