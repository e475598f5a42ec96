#include "model/cost/indexing_time.h"

#include <algorithm>

#include "model/cost/element_time.h"
#include "model/cost/kernel_models.h"
#include "model/cost/roofline.h"
#include "model/machine/gpu.h"

namespace dcsim {
namespace {

class IndexingWork {
 public:
  IndexingWork(const KernelTraits& of, const GpuSpec& gpu)
      : of_(of),
        gpu_(gpu),
        rates_(*gpu.kernels) {}

  double Embedding() const {
    return std::max(Transfer(of_.bytes, rates_.plain),
                    Numel(*of_.inputs.back()) / rates_.lookups_per_second);
  }
  double EmbeddingBackward() const {
    const EmbeddingBackwardRates& rates = rates_.embedding_backward;
    const double indices = Numel(*of_.inputs.back());
    const double adding =
        !of_.sorts ? indices * rates.index.seconds()
                   : rates.sort.seconds() + Numel(*of_.inputs.front()) / rates.elements_per_second;
    return FillSeconds(*of_.result, gpu_) + adding;
  }

  double Lookup() const {
    const auto elements = of_.elements();
    const double row = IndexedRow();
    return row > 1 ? std::max(Transfer(of_.result->bytes() * 2, rates_.plain),
                              elements / row / rates_.lookups_per_second)
                   : elements / rates_.indexing.looked_up;
  }

  double IndexPut() const {
    const IndexingRates& rates = rates_.indexing;
    const double elements = Numel(*of_.inputs.back());
    if (!of_.sorts) {
      return Copying() + elements / rates_.elements_per_second.alike;
    }
    return Copying() + SortingSeconds() +
           (IndexedRow() > 1 ? SameRows(elements) + elements / rates.elements_per_second
                             : AddedAlone(elements));
  }

  /// Elements one by one, each at an index of its own.
  double Gathered() const { return Numel(*of_.inputs[1]) / rates_.indexing.gathered; }

  double Scattered(double per_second) const {
    return Copying() + Numel(*of_.inputs[1]) / per_second;
  }

 private:
  static double Numel(const Value& value) { return static_cast<double>(value.numel()); }
  double Transfer(Bytes bytes, double share) const { return TransferSeconds(bytes, gpu_, share); }

  /// The first operand, which the op then writes into.
  double Copying() const { return WholeCopySeconds(*of_.inputs.front(), gpu_); }

  /// Elements that one set of indices names: what stands behind the indexed dimensions.
  double IndexedRow() const {
    const Value& source = *of_.inputs.front();
    double row = 1;
    for (std::size_t i = of_.indices.size(); i < source.shape.size(); ++i) {
      row *= static_cast<double>(source.shape[i]);
    }
    return row;
  }

  /// Rows that go to one row of the table are added one behind the other: as many as there would be
  /// if all came up alike (how often each does is not known).
  double SameRows(double elements) const {
    const double rows = elements / std::max(Numel(*of_.inputs.front()), 1.0);
    return rows * rates_.indexing.same_row.seconds();
  }

  /// Looking for indices outside, tensor by tensor, and sorting them: many in several kernels.
  double SortingSeconds() const {
    std::int64_t sets = 1;  // of indices, tensors of which are combined
    double tensors = 0;
    for (const Value* index : of_.indices) {
      if (index != nullptr) {
        const std::int64_t count = index->numel();
        sets = tensors > 0 && count == sets ? sets : sets * count;
        ++tensors;
      }
    }
    return sets > kMostFewIndices ? rates_.indexing.put.seconds()
                                  : tensors * rates_.indexing.put_few.seconds();
  }

  /// A warp adds what goes to one element of the tensor; as many of those as there are at most.
  double AddedAlone(double elements) const {
    const IndexingRates& rates = rates_.indexing;
    const double sums = std::min(elements, Numel(*of_.inputs.front()));
    return MakeContiguousSeconds(*of_.inputs.back(), gpu_) +
           elements / rates.single_elements_per_second + sums / rates.single_sums_per_second;
  }

  const KernelTraits& of_;
  const GpuSpec& gpu_;
  const KernelRates& rates_;
};

}  // namespace

std::optional<double> IndexingSeconds(const KernelTraits& of, const GpuSpec& gpu) {
  const IndexingWork work(of, gpu);
  switch (of.family) {
    case KernelFamily::kEmbedding:
      return work.Embedding();
    case KernelFamily::kEmbeddingBackward:
      return work.EmbeddingBackward();
    case KernelFamily::kIndex:
      return work.Lookup();
    case KernelFamily::kIndexPut:
      return work.IndexPut();
    case KernelFamily::kGather:
      return work.Gathered();
    case KernelFamily::kScatter:
      return work.Scattered(gpu.kernels->indexing.gathered);
    case KernelFamily::kScatterAdd:
      return work.Scattered(gpu.kernels->indexing.scatter_added);
    default:
      return std::nullopt;
  }
}

}  // namespace dcsim
