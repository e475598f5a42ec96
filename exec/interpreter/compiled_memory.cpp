#include "exec/interpreter/compiled_memory.h"

#include <algorithm>

#include <ATen/ops/empty.h>

#include "exec/interpreter/argument_values.h"
#include "model/ir/operator_schema.h"

namespace dcsim::exec {
namespace {

/// Whether each return of an op may be a view of an argument.
std::vector<bool> FindViews(const Graph& graph, const Op& op) {
  std::vector<bool> views(op.outputs.size());
  if (op.launch) {
    return views;
  }
  const auto schema = FindSchema(graph.schemas[op.schema]);
  for (std::size_t i = 0; schema && i < views.size(); ++i) {
    const std::size_t field = op.returns_list ? 0 : i;
    views[i] = field < schema->returns.size() && schema->returns[field].aliases;
  }
  return views;
}

}  // namespace

CompiledMemory::CompiledMemory(const Graph& graph, c10::Device device)
    : graph_(graph),
      device_(device),
      values_in_(graph.storages.size()),
      is_shared_(graph.storages.size()) {
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    values_in_[graph.values[v].storage.index()].emplace_back(v);
  }
  std::vector<std::size_t> makers(graph.storages.size());
  for (const Op& op : graph.ops) {
    const std::vector<bool> views = FindViews(graph, op);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i].is_none() && !views[i]) {
        const std::size_t storage = graph.storage_of(op.outputs[i]).index();
        is_shared_[storage] = ++makers[storage] > 1 ? 1 : 0;
      }
    }
  }
}

at::Tensor CompiledMemory::MemoryOf(StorageId storage, const Frame& frame) const {
  for (const ValueId value : values_in_[storage.index()]) {
    if (frame[value.index()].defined()) {
      return frame[value.index()];
    }
  }
  return {};
}

at::Tensor CompiledMemory::Find(ValueId id, const Frame& frame) const {
  const Value& value = graph_.value(id);
  at::Tensor memory = MemoryOf(value.storage, frame);
  if (!memory.defined()) {
    const std::int64_t bytes = graph_.storage(value.storage).bytes.count();
    memory = at::empty({bytes}, at::TensorOptions(at::kByte).device(device_));
  }
  at::Tensor tensor = at::empty({0}, at::TensorOptions(ToScalarType(value.dtype)).device(device_));
  tensor.set_(memory.storage(), value.offset, value.shape, value.strides);
  return tensor;
}

bool CompiledMemory::IsThere(ValueId value, const Frame& frame) const {
  return MemoryOf(graph_.storage_of(value), frame).defined();
}

bool CompiledMemory::CanBeStorage(const Value& value, const at::Tensor& tensor) const {
  const auto bytes = static_cast<std::size_t>(graph_.storage(value.storage).bytes.count());
  return tensor.storage().use_count() == 1 && tensor.storage().nbytes() >= bytes &&
         tensor.storage_offset() == value.offset;
}

at::Tensor CompiledMemory::Place(ValueId id, at::Tensor&& result, const Frame& frame) const {
  const Value& value = graph_.value(id);
  const at::Tensor memory = MemoryOf(value.storage, frame);
  const bool is_view = memory.defined() && result.is_alias_of(memory);
  const bool laid_out = result.strides() == at::IntArrayRef(value.strides);
  const bool is_shared = is_shared_[value.storage.index()] != 0;
  if (is_view || (laid_out && !is_shared) ||
      (laid_out && !memory.defined() && CanBeStorage(value, result))) {
    return std::move(result);
  }
  at::Tensor tensor = Find(id, frame);
  tensor.copy_(result);
  return tensor;
}

}  // namespace dcsim::exec
