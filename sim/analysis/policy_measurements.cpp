#include "sim/analysis/policy_measurements.h"

#include "model/cost/collective_cost.h"
#include "model/cost/kernel_models.h"
#include "model/cost/library_workspaces.h"
#include "model/cost/work_cost.h"
#include "model/graph/step_facts.h"

namespace dcsim {
namespace {

std::vector<Duration> OpTimes(const PredictionInputs& inputs) {
  std::vector<Duration> times;
  const StepFacts facts = AnalyseStep(inputs.graph);
  for (std::size_t i = 0; i < inputs.graph.ops.size(); ++i) {
    const OpProfile* profile =
        inputs.profile == nullptr ? nullptr : inputs.profile->FindOp(OpId(i));
    if (profile != nullptr) {
      times.push_back(profile->device_time);
    } else if (facts.is_view[i]) {
      times.emplace_back();
    } else {
      times.push_back(KernelTime(TraitsOf(inputs.graph, OpId(i)), inputs.cluster.gpu));
    }
  }
  return times;
}

/// run_all_gather in profilers/comm_profile.py: shares of 2^p elements, as long as each rank has
/// one.
std::vector<GatherTime> GatherTimesOf(const Cluster& cluster, int ranks) {
  constexpr int kMostPower = 30;
  constexpr std::int64_t kElementBytes = 2;
  std::vector<GatherTime> times;
  for (int power = 1; power <= kMostPower; ++power) {
    const std::int64_t share = (std::int64_t{1} << power) / ranks;
    if (share > 0) {
      const Bytes bytes(share * ranks * kElementBytes);
      times.push_back(
          {bytes, CollectiveTime(cluster, CollectiveKind::kAllGather, bytes, ranks).time});
    }
  }
  return times;
}

}  // namespace

PolicyInputs MeasureForPolicy(const PredictionInputs& inputs, int ranks) {
  PolicyInputs measured;
  measured.op_times = OpTimes(inputs);
  measured.profile = inputs.profile;
  measured.gather_times = GatherTimesOf(inputs.cluster, ranks);
  measured.gather_call = inputs.cluster.host.launch;
  const BytesPerSecond reload_rate = HostRateOf(inputs.cluster, MemoryPattern::kReload).first;
  if (reload_rate.count() != 0) {
    measured.reload_rate = reload_rate;
  }
  measured.device_memory = inputs.cluster.gpu.memory;
  measured.outside_allocator = inputs.cluster.gpu.outside_allocator;
  measured.workspaces = LibraryWorkspaces(inputs.cluster.gpu, inputs.graph);
  return measured;
}

}  // namespace dcsim
