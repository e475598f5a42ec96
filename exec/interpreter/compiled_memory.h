#pragma once

#include <vector>

#include "exec/interpreter/prepared_call.h"
#include "model/ir/graph.h"

namespace dcsim::exec {

/// Where the values of a compiled graph lie. Inductor has values share memory that are no views of
/// each other: kernels work in place, memory is used again, several ops fill parts of a buffer. A
/// value's tensor is laid out as recorded, since kernels take that for granted.
class CompiledMemory {
 public:
  CompiledMemory(const Graph& graph, c10::Device device);

  /// The tensor for a value that a kernel is to fill or to change: in the memory of the values of
  /// its storage that the frame has, or in new memory.
  at::Tensor Find(ValueId value, const Frame& frame) const;

  /// Whether Find has memory for a value that another value of the frame lies in.
  bool IsThere(ValueId value, const Frame& frame) const;

  /// What an operator returned for a value: as it is, where its memory can be that of the value's
  /// storage, or a copy where Find has it.
  at::Tensor Place(ValueId value, at::Tensor&& result, const Frame& frame) const;

 private:
  /// Any tensor of the frame in this storage, or an undefined one.
  at::Tensor MemoryOf(StorageId storage, const Frame& frame) const;
  /// Whether a tensor in memory of its own lies there as the value does in its storage.
  bool CanBeStorage(const Value& value, const at::Tensor& tensor) const;

  const Graph& graph_;
  c10::Device device_;
  std::vector<std::vector<ValueId>> values_in_;  // by storage
  std::vector<char> is_shared_;  // by storage: several ops make values in it that are no views
};

}  // namespace dcsim::exec
