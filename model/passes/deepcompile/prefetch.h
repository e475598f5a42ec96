#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/base/units.h"
#include "model/passes/deepcompile/pass_graph.h"
#include "model/passes/policy_inputs.h"

namespace dcsim {

/// A node of a scheduled graph, or the gathers of a fused prefetch (prefetch_params_fused).
struct PassStep {
  std::uint32_t node = 0;              // when `gathers` is empty
  std::vector<std::uint32_t> gathers;  // in the order of the call

  bool operator==(const PassStep&) const = default;
};

/// What the prefetch pass knows besides the graph.
struct PrefetchInputs {
  Bytes device_memory;                                 // of the GPU that has least
  std::vector<Bytes> peaks;                            // by place in the order: while the node ran
  std::function<double(std::int64_t)> gather_seconds;  // predicted, for bytes without padding
};

/// The pass "prefetch" (schedule_prefetch in passes/prefetch.py): walks a scheduled graph from its
/// end and moves each gather as far ahead as memory allows, joined with its neighbours where one
/// call is predicted to be cheaper.
///
///   order    nodes of `graph` as ScheduleGathers gives them; placeholders first
///
/// Held back gathers are issued once the peak before a node and their bytes exceed 90 % of the
/// device, or they hold more than 4e9 bytes. Two gathers are joined if 1.2 times the longer of both
/// exceeds the time of one call over both, which has to stay below 1e9 bytes. Returns the new
/// order without the gathers that a fused one precedes: they find their parameter gathered.
std::vector<PassStep> PrefetchGathers(const PassGraph& graph,
                                      const std::vector<std::uint32_t>& order,
                                      const PrefetchInputs& inputs);

/// A straight line between the points of a measured table, the last two continued; 0 for no bytes
/// (create_predictor in profilers/comm_profile.py). Points ascend; the point (0, 0) is added.
class GatherPredictor {
 public:
  struct Point {
    double bytes = 0;
    double seconds = 0;
  };
  explicit GatherPredictor(std::vector<Point> points);
  double operator()(std::int64_t bytes) const;

 private:
  std::vector<Point> points_;
};

/// The predictor that DeepCompile makes of its table.
GatherPredictor PredictorOf(const std::vector<GatherTime>& gather_times);

}  // namespace dcsim
