#include "exec/calibrate/launch_samples.h"

#include <algorithm>
#include <map>
#include <utility>

#include "model/cost/kernel_traits.h"

namespace dcsim::exec {
namespace {

/// What makes launches equal: their kernel, and their numbers.
std::pair<std::uint32_t, std::vector<std::int64_t>> SizesOf(const Op& op) {
  std::vector<std::int64_t> numbers;
  for (const Argument& argument : op.arguments) {
    if (const auto* number = std::get_if<std::int64_t>(&argument)) {
      numbers.push_back(*number);
    }
  }
  return {op.launch->kernel, numbers};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

WorkloadLaunches LaunchesOf(const Graph& graph, const Profile& profile, const GpuSpec& gpu) {
  struct Equal {
    OpId first;
    std::vector<double> seconds;
  };
  std::map<std::pair<std::uint32_t, std::vector<std::int64_t>>, Equal> groups;
  WorkloadLaunches launches;
  for (const OpProfile& entry : profile.ops) {
    const Op& op = graph.ops[entry.op.index()];
    if (!op.launch || entry.device_time.ns() == 0) {
      continue;
    }
    Equal& equal = groups.try_emplace(SizesOf(op), Equal{entry.op, {}}).first->second;
    equal.seconds.push_back(entry.device_time.seconds());
    launches.seconds += entry.device_time.seconds();
  }
  for (const auto& [sizes, equal] : groups) {
    launches.samples.push_back({LaunchWorkOf(TraitsOf(graph, equal.first), gpu),
                                Median(equal.seconds), equal.seconds.size()});
  }
  return launches;
}

void AddLaunches(const WorkloadLaunches& of, WorkloadLaunches& to) {
  to.samples.insert(to.samples.end(), of.samples.begin(), of.samples.end());
  to.seconds += of.seconds;
}

}  // namespace dcsim::exec
