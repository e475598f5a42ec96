#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/cluster.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Where parameters lie: ZeRO-1 and 2 keep them side by side in one tensor a dtype, so that one of
/// odd size (a bias of 4 elements) shifts all behind it from the multiples of 16 bytes that fast
/// kernels need (`align_tensors` puts such parameters last). ZeRO-3 gathers each into memory of its
/// own.
class ParamAlignment {
 public:
  /// Nothing is shifted in stage 3.
  ParamAlignment(const Graph& graph, const ScheduleOptions& options, int ranks);

  /// What an op takes besides `time`, measured or priced with its parameters at multiples of 16
  /// bytes: of a product what it takes at SlowProductShare, of a convolution with kernels of one
  /// element UnalignedWeightSeconds, of layer norms and embeddings what
  /// `unaligned_layer_norm` and `unaligned_lookups` say, of everything else nothing. Half precision
  /// only. Source: docs/costs.md.
  Duration Delay(const Graph& graph, OpId id, Duration time, const GpuSpec& gpu) const;

 private:
  /// Of a convolution.
  Duration ConvolutionDelay(const Graph& graph, OpId id, Duration time, const GpuSpec& gpu) const;

  /// The largest power of two, 16 at most, that tells where all tensors of an op begin, in bytes.
  std::int64_t AlignmentOf(const Graph& graph, const Op& op) const;

  /// Bytes by which a tensor begins behind a multiple of 16.
  std::int64_t Shift(const Graph& graph, ValueId value) const;

  std::vector<std::int64_t> begins_;  // by storage: elements in front of a parameter, else 0
};

}  // namespace dcsim
