#include "model/cost/norm_time.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "model/cost/batch_norm_time.h"
#include "model/cost/memory_time.h"
#include "model/cost/op_flops.h"
#include "model/cost/roofline.h"

namespace dcsim {
namespace {

class NormWork {
 public:
  NormWork(const Graph& graph, OpId id, const GpuSpec& gpu)
      : graph_(graph),
        id_(id),
        op_(graph.op(id)),
        backward_(Names("backward")),
        gpu_(gpu),
        rates_(*gpu.kernels) {}

  bool Names(std::string_view part) const {
    return graph_.target(id_).find(part) != std::string_view::npos;
  }

  double LayerNorm() const {
    return MakingContiguous() + (backward_ ? LayerNormBackward() : Rows(rates_.layer_norm));
  }

  /// A thread block sums a group, so few large groups leave the GPU idle.
  double GroupNorm() const {
    const GroupNormRates& rates = rates_.group_norm;
    const double elements = Numel(op_.inputs.front());
    if (backward_) {
      return GroupNormBackward(elements);
    }
    const double groups = op_.outputs.size() > 1 ? Numel(op_.outputs[1]) : 1;  // their means
    const double sums =
        std::max(groups / rates.blocks_per_second + elements / rates.elements_per_second,
                 elements / groups / rates.group_elements_per_second);
    return rates.start.seconds() + sums + elements / rates.written_per_second;
  }

 private:
  double Numel(ValueId value) const { return static_cast<double>(graph_.value(value).numel()); }
  double Transfer(double share) const {
    return TransferSeconds(CountBytes(graph_, id_), gpu_, share);
  }

  /// A thread block sums an image's channel; those of fewer than 256 elements are a warp.
  double GroupNormBackward(double elements) const {
    constexpr double kShort = 256;
    const GroupNormBackwardRates& rates = rates_.group_norm_backward;
    const std::vector<std::int64_t>& shape = graph_.value(op_.inputs.front()).shape;
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
    for (std::size_t i = 0; i < std::min(op_.inputs.size(), backward_ ? 2UL : 1UL); ++i) {
      seconds += MakeContiguousSeconds(graph_.value(op_.inputs[i]), gpu_);
    }
    return seconds;
  }

  /// Rows that are normalized, each by a mean and deviation of its own.
  std::int64_t CountRows() const {
    const std::vector<ValueId>& values = backward_ ? op_.inputs : op_.outputs;
    const std::size_t at = backward_ ? 2 : 1;
    const bool told = values.size() > at && !values[at].is_none();
    const std::int64_t rows = told ? graph_.value(values[at]).numel() : 1;
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
    const std::int64_t row = graph_.value(op_.inputs.front()).numel() / CountRows();
    const std::int64_t blocks = DivideUp(row, kColumns);
    const std::int64_t waves = DivideUp(blocks, gpu_.multiprocessors);
    const bool sums = op_.outputs.size() > 1 && !op_.outputs[1].is_none();
    const double summing = CountRows() > kManyRows ? Transfer(rates_.layer_norm_backward.share)
                                                   : static_cast<double>(CountRows() * waves) /
                                                         rates_.layer_norm_columns_per_second;
    return Rows(rates_.layer_norm_backward) + (sums ? summing : 0);
  }

  const Graph& graph_;
  OpId id_;
  const Op& op_;
  bool backward_;
  const GpuSpec& gpu_;
  const KernelRates& rates_;
};

}  // namespace

std::optional<double> FindNormSeconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  const NormWork work(graph, id, gpu);
  if (work.Names("group_norm")) {
    return work.GroupNorm();
  }
  if (work.Names("batch_norm")) {
    return BatchNormSeconds(graph, id, gpu);
  }
  if (work.Names("layer_norm") || work.Names("rms_norm")) {
    return work.LayerNorm();
  }
  return std::nullopt;
}

}  // namespace dcsim
