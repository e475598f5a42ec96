#include "model/cost/roofline.h"

#include <algorithm>
#include <cmath>

#include "model/base/error.h"
#include "model/cost/attention_time.h"
#include "model/cost/launch_time.h"
#include "model/cost/memory_time.h"
#include "model/cost/op_flops.h"
#include "model/cost/product_time.h"

namespace dcsim {
namespace {

double Efficiency(OpClass op_class, const GpuSpec& gpu) {
  switch (op_class) {
    case OpClass::kAttention:
      return gpu.attention_efficiency;
    case OpClass::kAttentionBackward:
      return gpu.attention_backward_efficiency;
    default:
      return gpu.matmul_efficiency;
  }
}

double Seconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  if (graph.op(id).launch) {
    return LaunchSeconds(graph, id, gpu);
  }
  const OpClass op_class = ClassifyOp(graph, id);
  if (gpu.kernels && op_class == OpClass::kMatmul) {
    return ProductSeconds(graph, id, gpu);
  }
  if (gpu.kernels && op_class == OpClass::kStreaming) {
    return MemorySeconds(graph, id, gpu);
  }
  const auto attention = gpu.kernels ? FindAttention(graph, id) : std::nullopt;
  if (attention && CountFlops(graph, id) > 0) {
    return AttentionSeconds(graph, id, *attention, gpu);
  }
  const double share = gpu.kernels ? gpu.kernels->plain : gpu.bandwidth_efficiency;
  return std::max(SecondsAtPeak(graph, id, gpu) / Efficiency(op_class, gpu),
                  TransferSeconds(CountBytes(graph, id), gpu, share));
}

}  // namespace

double SecondsAtPeak(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const std::int64_t flops = CountFlops(graph, id);
  if (flops == 0) {
    return 0;
  }
  const DType dtype = graph.value(graph.op(id).inputs.front()).dtype;
  const double peak = gpu.MatmulFlops(dtype);
  if (peak == 0) {
    throw Error("gpu " + gpu.name + ": matmul: no rate for " + std::string(DTypeName(dtype)) +
                ", which " + std::string(graph.target(id)) + " needs");
  }
  return static_cast<double>(flops) / peak;
}

double TransferSeconds(Bytes bytes, const GpuSpec& gpu, double share) {
  return static_cast<double>(bytes.count()) /
         (static_cast<double>(gpu.memory_bandwidth.count()) * share);
}

Duration RooflineTime(const Graph& graph, OpId id, const GpuSpec& gpu) {
  constexpr double kRounding = 1e-6;  // ns, of sums that are whole
  const Duration time = RoundedUpNs(Seconds(graph, id, gpu) * 1e9 - kRounding);
  // Triton kernels have a start of their own.
  return graph.op(id).launch ? time : std::max(time, gpu.shortest_kernel);
}

}  // namespace dcsim
