#include "model/cost/norm_time.h"

#include <algorithm>
#include <vector>

#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

class NormWork {
 public:
  NormWork(const KernelTraits& of, const GpuSpec& gpu) : of_(of), gpu_(gpu), rates_(*gpu.kernels) {}

  double LayerNorm() const {
    return MakingContiguous() + (of_.backward ? LayerNormBackward() : Rows(rates_.layer_norm));
  }

  /// A thread block sums a group, so few large groups leave the GPU idle.
  double GroupNorm() const {
    const GroupNormRates& rates = rates_.group_norm;
    const double elements = Numel(*of_.inputs.front());
    if (of_.backward) {
      return GroupNormBackward(elements);
    }
    const double groups = of_.outputs.size() > 1 ? Numel(*of_.outputs[1]) : 1;  // their means
    const double sums =
        std::max(groups / rates.blocks_per_second + elements / rates.elements_per_second,
                 elements / groups / rates.group_elements_per_second);
    return rates.start.seconds() + sums + elements / rates.written_per_second;
  }

 private:
  static double Numel(const Value& value) { return static_cast<double>(value.numel()); }
  double Transfer(double share) const { return TransferSeconds(of_.bytes, gpu_, share); }

  /// A thread block sums an image's channel; those of fewer than 256 elements are a warp.
  double GroupNormBackward(double elements) const {
    constexpr double kShort = 256;
    const GroupNormBackwardRates& rates = rates_.group_norm_backward;
    const std::vector<std::int64_t>& shape = of_.inputs.front()->shape;
    const auto images = static_cast<double>(shape.empty() ? 1 : shape.front());
    const double blocks = images * static_cast<double>(shape.size() > 1 ? shape[1] : 1);
    const bool short_channels = elements < kShort * blocks;
    const double sums =
        short_channels
            ? blocks / rates.short_blocks_per_second + elements / rates.short_elements_per_second
            : blocks / rates.blocks_per_second + elements / rates.elements_per_second;
    return rates.start.seconds() + images * rates.image.seconds() / (short_channels ? 2 : 1) +
           sums + elements / rates.written_per_second;
  }

  double MakingContiguous() const {
    double seconds = 0;
    for (std::size_t i = 0; i < std::min(of_.inputs.size(), of_.backward ? 2UL : 1UL); ++i) {
      seconds += MakeContiguousSeconds(*of_.inputs[i], gpu_);
    }
    return seconds;
  }

  /// Rows that are normalized, each by a mean and deviation of its own.
  std::int64_t CountRows() const {
    const auto& values = of_.backward ? of_.inputs : of_.outputs;
    const std::size_t at = of_.backward ? 2 : 1;
    const bool told = values.size() > at && values[at] != nullptr;
    const std::int64_t rows = told ? values[at]->numel() : 1;
    return std::max<std::int64_t>(rows, 1);
  }

  double Rows(const NormRates& rates) const {
    return Transfer(rates.share) + static_cast<double>(CountRows()) / rates.rows_per_second;
  }

  /// Sums for weight and bias: a thread block goes down 32 columns; of more rows than 65,536 many
  /// do, and what they take is the reading.
  double LayerNormBackward() const {
    constexpr std::int64_t kColumns = 32;
    constexpr std::int64_t kManyRows = 65'536;
    const std::int64_t row = of_.inputs.front()->numel() / CountRows();
    const std::int64_t blocks = DivideUp(row, kColumns);
    const std::int64_t waves = DivideUp(blocks, gpu_.multiprocessors);
    const bool sums = of_.outputs.size() > 1 && of_.outputs[1] != nullptr;
    const double summing = CountRows() > kManyRows
                               ? Transfer(rates_.layer_norm_backward.share)
                               : static_cast<double>(CountRows() * waves) /
                                     rates_.layer_norm_backward.columns_per_second;
    return Rows(rates_.layer_norm_backward) + (sums ? summing : 0);
  }

  const KernelTraits& of_;
  const GpuSpec& gpu_;
  const KernelRates& rates_;
};

}  // namespace

std::optional<double> NormSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  switch (of.family) {
    case KernelFamily::kLayerNorm:
      return NormWork(of, gpu).LayerNorm();
    case KernelFamily::kGroupNorm:
      return NormWork(of, gpu).GroupNorm();
    default:
      return std::nullopt;
  }
}

}  // namespace dcsim
