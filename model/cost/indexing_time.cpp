#include "model/cost/indexing_time.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cost/memory_time.h"
#include "model/cost/op_flops.h"
#include "model/cost/roofline.h"
#include "model/cost/rows_by_index.h"

namespace dcsim {
namespace {

class IndexingWork {
 public:
  IndexingWork(const Graph& graph, OpId id, const GpuSpec& gpu)
      : graph_(graph),
        id_(id),
        op_(graph.op(id)),
        target_(graph.target(id)),
        gpu_(gpu),
        rates_(*gpu.kernels) {}

  std::optional<double> FindSeconds() const {
    static constexpr std::array<std::pair<std::string_view, Part>, 9> kParts = {{
        {"aten::embedding", &IndexingWork::Embedding},
        {"aten::embedding_dense_backward", &IndexingWork::EmbeddingBackward},
        {"aten::index.Tensor", &IndexingWork::Lookup},
        {"aten::_unsafe_index.Tensor", &IndexingWork::Lookup},
        {"aten::index_put", &IndexingWork::IndexPut},
        {"aten::_unsafe_index_put", &IndexingWork::IndexPut},
        {"aten::gather", &IndexingWork::Gathered},
        {"aten::scatter.src", &IndexingWork::Scattered},
        {"aten::scatter_add", &IndexingWork::Scattered},
    }};
    const auto* const named = std::find_if(
        kParts.begin(), kParts.end(), [&](const auto& entry) { return entry.first == target_; });
    return named == kParts.end() ? std::nullopt : std::optional((this->*named->second)());
  }

 private:
  using Part = double (IndexingWork::*)() const;

  const Value& Result() const { return graph_.value(op_.first_output()); }
  double Numel(ValueId value) const { return static_cast<double>(graph_.value(value).numel()); }
  double Transfer(Bytes bytes, double share) const { return TransferSeconds(bytes, gpu_, share); }

  /// The first operand, which the op then writes into.
  double Copying() const { return WholeCopySeconds(graph_.value(op_.inputs.front()), gpu_); }

  double Embedding() const {
    return std::max(Transfer(CountBytes(graph_, id_), rates_.plain),
                    Numel(op_.inputs.back()) / rates_.lookups_per_second);
  }
  double EmbeddingBackward() const {
    const EmbeddingBackwardRates& rates = rates_.embedding_backward;
    const double indices = Numel(op_.inputs.back());
    const double adding =
        !SortsIndices(graph_, id_)
            ? indices * rates.index.seconds()
            : rates.sort.seconds() + Numel(op_.inputs.front()) / rates.elements_per_second;
    return FillSeconds(Result(), gpu_) + adding;
  }

  /// The tensors of indices, none for dimensions that are taken whole.
  std::span<const ValueId> Indices() const {
    for (const Argument& argument : op_.arguments) {
      if (const auto* indices = std::get_if<std::vector<ValueId>>(&argument)) {
        return *indices;
      }
    }
    return {};
  }

  /// Elements that one set of indices names: what stands behind the indexed dimensions.
  double IndexedRow() const {
    const Value& source = graph_.value(op_.inputs.front());
    double row = 1;
    for (std::size_t i = Indices().size(); i < source.shape.size(); ++i) {
      row *= static_cast<double>(source.shape[i]);
    }
    return row;
  }

  double Lookup() const {
    const auto elements = static_cast<double>(Result().numel());
    const double row = IndexedRow();
    return row > 1 ? std::max(Transfer(Result().bytes() * 2, rates_.plain),
                              elements / row / rates_.lookups_per_second)
                   : elements / rates_.indexing.looked_up;
  }

  /// Rows that go to one row of the table are added one behind the other: as many as there would be
  /// if all came up alike (how often each does is not known).
  double SameRows(double elements) const {
    const double rows = elements / std::max(Numel(op_.inputs.front()), 1.0);
    return rows * rates_.indexing.same_row.seconds();
  }

  double IndexPut() const {
    const IndexingRates& rates = rates_.indexing;
    const double elements = Numel(op_.inputs.back());
    const bool adds = AddsByIndex(graph_, id_);
    if (!adds) {
      return Copying() + elements / rates_.elements_per_second.alike;
    }
    return Copying() + SortingSeconds() +
           (IndexedRow() > 1 ? SameRows(elements) + elements / rates.elements_per_second
                             : AddedAlone(elements));
  }

  /// Looking for indices outside, tensor by tensor, and sorting them: many in several kernels.
  double SortingSeconds() const {
    std::int64_t sets = 1;  // of indices, tensors of which are combined
    double tensors = 0;
    for (const ValueId index : Indices()) {
      if (!index.is_none()) {
        const std::int64_t count = graph_.value(index).numel();
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
    const double sums = std::min(elements, Numel(op_.inputs.front()));
    return MakeContiguousSeconds(graph_.value(op_.inputs.back()), gpu_) +
           elements / rates.single_elements_per_second + sums / rates.single_sums_per_second;
  }

  /// Elements one by one, each at an index of its own.
  double Gathered() const { return Numel(op_.inputs[1]) / rates_.indexing.gathered; }
  double Scattered() const {
    const IndexingRates& rates = rates_.indexing;
    const bool adds = target_ == "aten::scatter_add";
    return Copying() + Numel(op_.inputs[1]) / (adds ? rates.scatter_added : rates.gathered);
  }

  const Graph& graph_;
  OpId id_;
  const Op& op_;
  std::string_view target_;
  const GpuSpec& gpu_;
  const KernelRates& rates_;
};

}  // namespace

std::optional<double> FindIndexingSeconds(const Graph& graph, OpId id, const GpuSpec& gpu) {
  return IndexingWork(graph, id, gpu).FindSeconds();
}

}  // namespace dcsim
