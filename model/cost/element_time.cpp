#include "model/cost/element_time.h"

#include <algorithm>

#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

double RateOf(ElementAccess access, const Value& result, const ElementRates& rates) {
  switch (access) {
    case ElementAccess::kBroadcast:
      return ElementBytes(result.dtype) > 2 ? rates.alike : rates.broadcast;
    case ElementAccess::kPermuted:
      return rates.permuted;
    case ElementAccess::kConverted:
      return rates.converted;
    case ElementAccess::kTransposed:
      return rates.transposed;
    case ElementAccess::kPlain:
    case ElementAccess::kAlike:
      break;
  }
  return rates.alike;
}

}  // namespace

std::optional<double> ElementSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  if (of.result == nullptr || of.op_class() != OpClass::kStreaming ||
      of.family == KernelFamily::kUntold) {
    return std::nullopt;
  }
  const bool gelu = of.family == KernelFamily::kGelu;
  const double transfer =
      TransferSeconds(of.bytes, gpu, gelu ? gpu.kernels->gelu : gpu.kernels->plain);
  const double elements =
      of.access == ElementAccess::kPlain
          ? transfer
          : std::max(transfer, of.elements() /
                                   RateOf(of.access, *of.result, gpu.kernels->elements_per_second));
  const bool copies = of.family == KernelFamily::kMaskedFill;
  return (copies ? WholeCopySeconds(*of.inputs.front(), gpu) : 0) + elements;
}

double FillSeconds(const Value& value, const GpuSpec& gpu) {
  return std::max(TransferSeconds(value.bytes(), gpu, 1),
                  static_cast<double>(value.numel()) / gpu.kernels->elements_per_second.filled);
}

double WholeCopySeconds(const Value& value, const GpuSpec& gpu) {
  return TransferSeconds(value.bytes() * 2, gpu, gpu.kernels->plain);
}

double MakeContiguousSeconds(const Value& value, const GpuSpec& gpu) {
  return value.is_contiguous() ? 0 : ContiguousCopySeconds(value, gpu);
}

double ContiguousCopySeconds(const Value& value, const GpuSpec& gpu) {
  const double transfer = WholeCopySeconds(value, gpu);
  const ElementAccess access = CopyAccess(value);
  return access == ElementAccess::kPlain
             ? transfer
             : std::max(transfer, static_cast<double>(value.numel()) /
                                      RateOf(access, value, gpu.kernels->elements_per_second));
}

}  // namespace dcsim
