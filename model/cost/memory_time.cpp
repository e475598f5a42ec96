#include "model/cost/memory_time.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "model/cost/element_access.h"
#include "model/cost/indexing_time.h"
#include "model/cost/norm_time.h"
#include "model/cost/op_flops.h"
#include "model/cost/reduce_shape.h"
#include "model/cost/roofline.h"
#include "model/graph/spanned_elements.h"

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

/// One op, and what its parts take.
class MemoryWork {
 public:
  MemoryWork(const Graph& graph, OpId id, const GpuSpec& gpu)
      : graph_(graph),
        id_(id),
        op_(graph.op(id)),
        target_(graph.target(id)),
        gpu_(gpu),
        rates_(*gpu.kernels) {}

  double Seconds() const {
    if (op_.inputs.empty() || op_.first_output().is_none()) {
      return Transfer(CountBytes(graph_, id_), rates_.plain);
    }
    if (target_.find("softmax") != std::string_view::npos) {
      return Softmax();
    }
    if (const auto norm = FindNormSeconds(graph_, id_, gpu_)) {
      return *norm;
    }
    if (const auto indexing = FindIndexingSeconds(graph_, id_, gpu_)) {
      return *indexing;
    }
    if (const auto part = FindPart()) {
      return (this->*part)();
    }
    if (const auto shape = FindReduceShape(graph_, id_, gpu_.multiprocessors)) {
      return Reduction(*shape, CountBytes(graph_, id_));
    }
    const bool gelu = target_.starts_with("aten::gelu");
    const bool copies = target_.starts_with("aten::masked_fill");
    // Into a copy of its operand.
    return (copies ? WholeCopySeconds(First(), gpu_) : 0) +
           Elementwise(AccessOf(graph_, id_), gelu ? rates_.gelu : rates_.plain);
  }

 private:
  using Part = double (MemoryWork::*)() const;

  /// What an op of this very name takes, or null.
  Part FindPart() const {
    static constexpr std::array<std::pair<std::string_view, Part>, 16> kParts = {{
        {"aten::cat", &MemoryWork::Concatenation},
        {"aten::copy", &MemoryWork::CopiedInto},
        {"aten::stack", &MemoryWork::Concatenation},
        {"aten::nll_loss_backward", &MemoryWork::Filled},
        {"aten::sort", &MemoryWork::Sorted},
        {"aten::argsort", &MemoryWork::Sorted},
        {"aten::slice_backward", &MemoryWork::Padded},
        {"aten::select_backward", &MemoryWork::Padded},
        {"aten::constant_pad_nd", &MemoryWork::Padded},
        {"aten::roll", &MemoryWork::Rolled},
        {"aten::avg_pool2d", &MemoryWork::Pooled},
        {"aten::avg_pool2d_backward", &MemoryWork::Pooled},
        {"aten::max_pool2d_with_indices", &MemoryWork::Pooled},
        {"aten::max_pool2d_with_indices_backward", &MemoryWork::Pooled},
        {"aten::im2col", &MemoryWork::Unfolded},
        {"aten::col2im", &MemoryWork::Folded},
    }};
    const auto* const named = std::find_if(
        kParts.begin(), kParts.end(), [&](const auto& entry) { return entry.first == target_; });
    return named != kParts.end()               ? named->second
           : target_.starts_with("aten::new_") ? &MemoryWork::Filled
                                               : nullptr;
  }

  double Filled() const { return FillSeconds(Result(), gpu_); }
  double Sorted() const { return rates_.indexing.sort.seconds(); }
  /// Padding by nothing, or by less, copies what is left.
  double Padded() const {
    const Value& source = graph_.value(op_.inputs.front());
    if (Result().numel() == source.numel()) {
      return ContiguousCopySeconds(source, gpu_);
    }
    const double copying = Transfer(Result().bytes() * 2, rates_.plain);
    return Result().numel() < source.numel()
               ? std::max(copying, static_cast<double>(Result().numel()) /
                                       rates_.elements_per_second.broadcast)
               : FillSeconds(Result(), gpu_) +
                     Numel(op_.inputs.front()) / rates_.elements_per_second.alike;
  }
  /// One kernel a dimension.
  double Rolled() const {
    const std::vector<std::int64_t>* shifts = FirstList();
    const double kernels = shifts == nullptr ? 1 : static_cast<double>(shifts->size());
    return kernels * static_cast<double>(Result().numel()) / rates_.elements_per_second.rolled;
  }
  /// Every element of every window is read, one by one; the first list says how wide windows are.
  /// Windows end where the tensor does.
  double Pooled() const {
    const std::vector<std::int64_t>* sizes = FirstList();
    const Value& pooled = IsBackward() ? Result() : graph_.value(op_.inputs.front());
    double window = 1;
    for (std::size_t i = 0; sizes != nullptr && i < sizes->size(); ++i) {
      const std::size_t behind = sizes->size() - i;  // dimensions from this one on
      const std::int64_t length =
          behind <= pooled.shape.size() ? pooled.shape[pooled.shape.size() - behind] : 1;
      window *= static_cast<double>(std::min((*sizes)[i], length));
    }
    const double means = IsBackward() ? Numel(op_.inputs.front()) : Numel(op_.first_output());
    const PoolingRates& rates = rates_.pooling;
    if (target_.starts_with("aten::max")) {
      return means * window / (IsBackward() ? rates.maximum_backward : rates.maximum);
    }
    return means * window / (IsBackward() ? rates.backward : rates.forward);
  }

  /// Windows into columns, and columns added up into images.
  double Unfolded() const {
    return MakeContiguousSeconds(First(), gpu_) +
           static_cast<double>(Result().numel()) / rates_.pooling.unfolded;
  }
  double Folded() const {
    return MakeContiguousSeconds(First(), gpu_) +
           static_cast<double>(First().numel()) / rates_.pooling.folded;
  }

  /// Of the op's arguments the first list of numbers, or null.
  const std::vector<std::int64_t>* FirstList() const {
    for (const Argument& argument : op_.arguments) {
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&argument)) {
        return list;
      }
    }
    return nullptr;
  }
  bool IsBackward() const { return target_.find("backward") != std::string_view::npos; }
  const Value& First() const { return graph_.value(op_.inputs.front()); }
  const Value& Result() const { return graph_.value(op_.first_output()); }
  double Numel(ValueId value) const { return static_cast<double>(graph_.value(value).numel()); }

  double Transfer(Bytes bytes, double share) const { return TransferSeconds(bytes, gpu_, share); }

  /// All from the first operand's first element to its last, then the second over its elements.
  double CopiedInto() const {
    const Value& into = graph_.value(op_.inputs.front());
    const std::int64_t spanned = into.numel() > 0 ? SpannedElements(into) : 0;
    return Transfer(Bytes(spanned * ElementBytes(into.dtype)) * 2, rates_.plain) +
           ContiguousCopySeconds(graph_.value(op_.inputs.back()), gpu_);
  }

  double Elementwise(ElementAccess access, double share) const {
    const double transfer = Transfer(CountBytes(graph_, id_), share);
    const double elements = static_cast<double>(Result().numel());
    return access == ElementAccess::kPlain
               ? transfer
               : std::max(transfer,
                          elements / RateOf(access, Result(), rates_.elements_per_second));
  }

  /// Each value brings what lies beside it, of which its neighbours make nothing.
  double SparseReading(const ReduceShape& shape) const {
    constexpr Bytes kSector(32);
    return shape.apart < kSector ? 0 : Transfer(kSector * (shape.outputs * shape.values), 1);
  }

  double Reduction(const ReduceShape& shape, Bytes bytes) const {
    constexpr std::int64_t kThreads = 2048;  // of a multiprocessor
    constexpr std::int64_t kAtATime = 4;     // values of a thread
    const ReductionRates& rates = rates_.reduction;
    const double waves = static_cast<double>(shape.blocks * shape.threads) /
                         static_cast<double>(gpu_.multiprocessors * kThreads);
    const std::int64_t rounds = DivideUp(shape.values_per_thread, kAtATime);
    const double joining =
        shape.parts == 1
            ? 0
            : rates.stage.seconds() + rates.part.seconds() * static_cast<double>(shape.parts);
    return rates.start.seconds() + joining +
           std::max({Transfer(bytes, rates.share) + waves * rates.wave.seconds(),
                     static_cast<double>(rounds) * rates.values.seconds(), SparseReading(shape)});
  }

  /// One element of each row of what is read, as a mask has it: sums along rows of booleans.
  double RowsOfBooleans() const {
    const Value& read = graph_.value(op_.inputs.front());
    return Transfer(Bytes(read.numel()), rates_.reduction.share) + rates_.reduction.start.seconds();
  }

  /// Of the result, of so many elements.
  double CountRows(std::int64_t row) const {
    return static_cast<double>(Result().numel()) /
           static_cast<double>(std::max<std::int64_t>(row, 1));
  }

  /// Rows too long for a warp that fill no multiple of 16 bytes: a block of 1,024 threads each.
  double UnevenRows(std::int64_t row) const {
    constexpr std::int64_t kVector = 16;  // bytes
    constexpr int kBlocks = 2;            // on a multiprocessor
    const bool even = row * ElementBytes(Result().dtype) % kVector == 0;
    return even || IsBackward()
               ? 0
               : CountRows(row) * rates_.softmax.block.seconds() / (gpu_.multiprocessors * kBlocks);
  }

  /// In half precision a warp computes longer than memory takes for its row, which it fills up to a
  /// power of two.
  double ShortRows(std::int64_t row) const {
    if (IsBackward() || ElementBytes(graph_.value(op_.inputs.front()).dtype) > 2) {
      return 0;
    }
    const auto padded = std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(row, 1)));
    return CountRows(row) * static_cast<double>(padded) / rates_.softmax.short_elements_per_second;
  }

  /// Rows of 1,024 elements or fewer lie in a warp's registers, of 2,048 with fewer warps.
  double Softmax() const {
    constexpr std::int64_t kShort = 1024;
    constexpr std::int64_t kMiddle = 2048;
    const SoftmaxRates& rates = rates_.softmax;
    const Bytes bytes = CountBytes(graph_, id_);
    const std::int64_t row = Result().shape.empty() ? 1 : Result().shape.back();
    const bool logarithm = target_.find("log_softmax") != std::string_view::npos;
    const double long_rows = IsBackward() ? rates.long_rows_backward : rates.long_rows;
    const double share = row <= kShort    ? rates_.plain
                         : row <= kMiddle ? (IsBackward() ? rates_.plain : rates.middle_rows)
                                          : long_rows;
    const double seconds =
        std::max(Transfer(bytes, share), row > kShort ? UnevenRows(row) : ShortRows(row));
    if (IsBackward() && !logarithm) {
      return seconds + Transfer(bytes, rates_.plain);  // gradient times result, in a kernel before
    }
    if (target_.find("safe_softmax") == std::string_view::npos) {
      return seconds;
    }
    // Which elements are masked, which rows have no others, and zeros in those.
    const double elements = static_cast<double>(Result().numel());
    const Bytes masked(Result().numel() * (ElementBytes(Result().dtype) + 1));
    return seconds + Transfer(masked, rates_.plain) + RowsOfBooleans() +
           elements / rates_.elements_per_second.alike;
  }

  double Concatenation() const {
    const bool contiguous = std::all_of(op_.inputs.begin(), op_.inputs.end(), [&](ValueId input) {
      return graph_.value(input).is_contiguous();
    });
    const double transfer = Transfer(CountBytes(graph_, id_), rates_.plain);
    return contiguous ? transfer
                      : std::max(transfer, static_cast<double>(Result().numel()) /
                                               rates_.elements_per_second.concatenated);
  }

  const Graph& graph_;
  OpId id_;
  const Op& op_;
  std::string_view target_;
  const GpuSpec& gpu_;
  const KernelRates& rates_;
};

}  // namespace

double MemorySeconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  return MemoryWork(graph, id, gpu).Seconds();
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
