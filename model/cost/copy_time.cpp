#include "model/cost/copy_time.h"

#include <algorithm>

#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/graph/spanned_elements.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

/// Padding by nothing, or by less, copies what is left.
double Pad(const KernelTraits& of, const GpuSpec& gpu) {
  const Value& source = *of.inputs.front();
  const ElementRates& rates = gpu.kernels->elements_per_second;
  if (of.result->numel() == source.numel()) {
    return ContiguousCopySeconds(source, gpu);
  }
  return of.result->numel() < source.numel()
             ? std::max(WholeCopySeconds(*of.result, gpu), of.elements() / rates.broadcast)
             : FillSeconds(*of.result, gpu) + static_cast<double>(source.numel()) / rates.alike;
}

/// One kernel a dimension.
double Roll(const KernelTraits& of, const GpuSpec& gpu) {
  const double kernels = of.numbers == nullptr ? 1 : static_cast<double>(of.numbers->size());
  return kernels * of.elements() / gpu.kernels->elements_per_second.rolled;
}

/// All from the first operand's first element to its last, then the second over its elements.
double CopyInto(const KernelTraits& of, const GpuSpec& gpu) {
  const Value& into = *of.inputs.front();
  const std::int64_t spanned = into.numel() > 0 ? SpannedElements(into) : 0;
  const Bytes bytes(spanned * ElementBytes(into.dtype));
  return TransferSeconds(bytes * 2, gpu, gpu.kernels->plain) +
         ContiguousCopySeconds(*of.inputs.back(), gpu);
}

double Concatenate(const KernelTraits& of, const GpuSpec& gpu) {
  const bool contiguous = std::all_of(of.inputs.begin(), of.inputs.end(),
                                      [](const Value* value) { return value->is_contiguous(); });
  const double transfer = TransferSeconds(of.bytes, gpu, gpu.kernels->plain);
  const double rate = gpu.kernels->elements_per_second.concatenated;
  return contiguous ? transfer : std::max(transfer, of.elements() / rate);
}

}  // namespace

std::optional<double> CopySeconds(const KernelTraits& of, const GpuSpec& gpu) {
  switch (of.family) {
    case KernelFamily::kConcatenation:
      return Concatenate(of, gpu);
    case KernelFamily::kCopyInto:
      return CopyInto(of, gpu);
    case KernelFamily::kFill:
      return FillSeconds(*of.result, gpu);
    case KernelFamily::kSort:
      return gpu.kernels->indexing.sort.seconds();
    case KernelFamily::kPad:
      return Pad(of, gpu);
    case KernelFamily::kRoll:
      return Roll(of, gpu);
    default:
      return std::nullopt;
  }
}

}  // namespace dcsim
