#include "model/cost/roofline.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/cost/kernel_models.h"
#include "model/machine/gpu.h"

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

}  // namespace

std::optional<double> RooflineSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const double share = gpu.kernels ? gpu.kernels->plain : gpu.bandwidth_efficiency;
  return std::max(SecondsAtPeak(of, gpu) / Efficiency(of.op_class(), gpu),
                  TransferSeconds(of.bytes, gpu, share));
}

double SecondsAtPeak(const KernelTraits& of, const GpuSpec& gpu) {
  if (of.flops == 0) {
    return 0;
  }
  const DType dtype = of.inputs.front()->dtype;
  const double peak = gpu.MatmulFlops(dtype);
  if (peak == 0) {
    throw Error("gpu " + gpu.name + ": matmul: no rate for " + std::string(DTypeName(dtype)) +
                ", which " + std::string(of.target) + " needs");
  }
  return static_cast<double>(of.flops) / peak;
}

double TransferSeconds(Bytes bytes, const GpuSpec& gpu, double share) {
  return static_cast<double>(bytes.count()) /
         (static_cast<double>(gpu.memory_bandwidth.count()) * share);
}

}  // namespace dcsim
