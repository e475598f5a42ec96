#include "sim/search/useful_options.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/graph/fused_casts.h"
#include "model/graph/sharding.h"

namespace dcsim {
namespace {

/// One value of an option for all; what is then the same stays once.
void SetAll(SearchSpace& space, bool ScheduleOptions::*option, bool value) {
  std::vector<ScheduleOptions> kept;
  for (ScheduleOptions options : space.options) {
    options.*option = value;
    if (std::find(kept.begin(), kept.end(), options) == kept.end()) {
      kept.push_back(options);
    }
  }
  space.options = std::move(kept);
}

}  // namespace

bool LeaveOutUnmeasuredCopies(const Cluster& cluster, int ranks, SearchSpace& space) {
  const bool measured = cluster.copy_engines && cluster.NodesOf(ranks) == 1;
  const auto copies = [](const ScheduleOptions& options) {
    return options.gather_engine == Engine::kCopyEngine;
  };
  const bool has_others = std::any_of(
      space.options.begin(), space.options.end(),
      [&](const ScheduleOptions& options) { return options.stage == 3 && !copies(options); });
  return !measured && has_others && std::erase_if(space.options, copies) > 0;
}

void LeaveOutUselessFusing(const Graph& graph, SearchSpace& space) {
  const Graph fused = FuseCasts(graph);
  const bool fuses = std::any_of(fused.params.begin(), fused.params.end(),
                                 [](const Param& param) { return param.gather_dtype.has_value(); });
  if (fuses) {
    return;
  }
  SetAll(space, &ScheduleOptions::fuse_casts, false);
}

void DecideAlignment(const Graph& graph, int ranks, SearchSpace& space) {
  const bool may = std::any_of(space.options.begin(), space.options.end(),
                               [](const ScheduleOptions& each) { return each.align_tensors; });
  SetAll(space, &ScheduleOptions::align_tensors, may && HasUnalignedParams(graph, ranks));
}

bool SearchCompiled(const Graph& compiled, SearchSpace& space) {
  const std::vector<int>& stages = compiled.compiled->stages;
  const std::size_t left_out = std::erase_if(space.options, [&](const ScheduleOptions& options) {
    return std::find(stages.begin(), stages.end(), options.stage) == stages.end();
  });
  if (space.options.empty()) {
    throw Error("the space has no stage for which the compiled graph was lowered");
  }
  for (ScheduleOptions& options : space.options) {
    options.backend = Backend::kInductor;
    options.gradient_handling = GradientHandling::kDeepSpeed;
    options.compute_grad_norm = true;
  }
  return left_out > 0;
}

}  // namespace dcsim
