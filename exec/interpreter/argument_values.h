#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include "model/ir/graph.h"

namespace dcsim::exec {

/// A recorded argument as the dispatcher takes it.
///
///   type     of the schema's argument
///   device   that "local" stands for
///
/// Tensors and lists of tensors are undefined placeholders, to be filled when the op runs. A number
/// where the schema has a tensor becomes PyTorch's wrapped number. Throws Error for what does not
/// fit the type.
c10::IValue ToIValue(const Argument& argument, const c10::TypePtr& type, c10::Device device);

/// PyTorch's dtype of ours.
c10::ScalarType ToScalarType(DType dtype);

}  // namespace dcsim::exec
