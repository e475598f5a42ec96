#pragma once

#include <cstdint>
#include <vector>

#include "model/base/units.h"
#include "model/ir/graph.h"
#include "model/ir/plan.h"

namespace dcsim {

/// Elements of one rank's shard of a tensor of `numel` elements: ceil(numel / ranks), the last
/// shard padded. ZeRO-3's way (DeepSpeed partition_parameters.py).
constexpr std::int64_t ShardElements(std::int64_t numel, int ranks) {
  return DivideUp(numel, ranks);
}

/// Elements of the gathered tensor with its padding: ranks * ShardElements.
constexpr std::int64_t GatheredElements(std::int64_t numel, int ranks) {
  return ShardElements(numel, ranks) * ranks;
}

/// Bytes of a gathered parameter with its padding.
inline Bytes GatheredBytes(const Graph& graph, ParamId id, int ranks) {
  return Bytes(GatheredElements(graph.numel(id), ranks) * ElementBytes(graph.gather_dtype(id)));
}

/// The parameters of one dtype, which ZeRO keeps in one flat tensor a kind (weights, gradients,
/// master weights, optimizer states). Trainable parameters come first, so that a partition is cut
/// from one run of them.
struct FlatGroup {
  DType dtype = DType::kBFloat16;
  std::vector<ParamId> params;  // trainable ones, then frozen ones, ascending each
  std::int64_t elements = 0;    // of all its parameters
  std::int64_t trainable = 0;   // of those with a gradient
};

/// Groups in the order of their first parameter.
std::vector<FlatGroup> FlatGroups(const Graph& graph);

/// Fast kernels and NCCL's fast path need tensors that begin at multiples of so many bytes.
constexpr std::int64_t kTensorAlignment = 16;

/// Whether a parameter of the graph, or a rank's shard of it, fills no whole multiple of 16 bytes:
/// then `align_tensors` changes where tensors lie.
bool HasUnalignedParams(const Graph& graph, int ranks);

/// Whether each parameter is cut into equal shards (ZeRO-3, and reduce-scatter in all stages), or
/// one flat tensor of all of them wherever a rank's part ends (all-reduce, as DeepSpeed's stages 1
/// and 2).
constexpr bool CutByParameter(const ScheduleOptions& options) {
  return options.stage == 3 || options.reduce_collective == ReduceCollective::kReduceScatter;
}

/// Whether gradients are reduced once a step; else in each micro-step.
constexpr bool ReducesOnce(const ScheduleOptions& options) {
  return options.gradient_reduction == GradientReduction::kCoalesced ||
         (options.stage == 1 && options.gradient_reduction != GradientReduction::kEachMicroStep);
}

/// Whether the gradient partition outlives steps; else it is made for each step (ZeRO-1 that
/// reduces once; eager buckets in ZeRO-2).
constexpr bool HasResidentPartition(const ScheduleOptions& options) {
  if (options.gradient_buckets == GradientBuckets::kEager) {
    return options.stage == 3;
  }
  return options.stage != 1 || options.buffer_lifetime == BufferLifetime::kPermanent ||
         !ReducesOnce(options);
}

/// Whether whole gradients are kept until the step's last backward has ended: coalesced, and eager
/// ZeRO-1 without overlap_comm, whose hooks do nothing.
constexpr bool ReducesBehindBackward(const ScheduleOptions& options) {
  return options.gradient_reduction == GradientReduction::kCoalesced ||
         (options.stage == 1 && options.gradient_buckets == GradientBuckets::kEager &&
          !options.overlap_comm);
}

/// Elements that a parameter takes in the flat weights that every rank holds: its shard in ZeRO-3;
/// else all of it, with the padding that its all-gather needs when it is cut into shards.
std::int64_t WeightElements(const Graph& graph,
                            ParamId id,
                            const ScheduleOptions& options,
                            int ranks);

/// FlatGroups with their parameters in the order in which they lie. With `align_tensors` those that
/// fill whole multiples of 16 bytes in the flat weights come before the others, trainable and
/// frozen ones each, so that none of odd size shifts them.
std::vector<FlatGroup> LaidOutGroups(const Graph& graph, const ScheduleOptions& options, int ranks);

/// Where each parameter of a laid-out group begins in the flat weights, in elements, and behind
/// them all the end. Where one flat tensor is cut, the padding of PartitionElements is behind the
/// trainable ones, and with `parameter_alignment` each trainable one begins at a multiple of 16
/// bytes. With `align_tensors` the frozen ones do.
std::vector<std::int64_t> WeightOffsets(const Graph& graph,
                                        const FlatGroup& group,
                                        const ScheduleOptions& options,
                                        int ranks);

/// Elements of one rank's partition of the trainable parameters of a group.
///
/// Cut from one flat tensor padded to a multiple of 2 * ranks (ZeRO-1 and 2 with all-reduce,
/// DeepSpeed stage_1_and_2.py), or the sum of the parameters' own shards (CutByParameter).
std::int64_t PartitionElements(const Graph& graph,
                               const FlatGroup& group,
                               const ScheduleOptions& options,
                               int ranks);

/// One of the optimizer's tensors, and its bytes on each rank.
struct StateSize {
  OptimizerState state;
  Bytes bytes;
};

/// Every optimizer state that the algorithm keeps, in the order in which DeepSpeed offloads them:
/// by flat tensor, then exp_avg, exp_avg_sq, hp_param; none of dtypes without trainable parameters.
std::vector<StateSize> StatesOf(const Graph& graph, const ScheduleOptions& options, int ranks);

}  // namespace dcsim
