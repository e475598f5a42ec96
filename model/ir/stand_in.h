#pragma once

#include "model/ir/document.h"
#include "model/ir/graph.h"
#include "model/ir/op_checks.h"

namespace dcsim {

/// The key "computes" of a kernel, whose signature is read. `schemas`: entries of that table.
void ReadStandIn(ObjectReader& object, std::size_t schemas, TritonKernel& kernel);

/// The same key, where the kernel has one.
void PrintStandIn(const TritonKernel& kernel, Json& json);

/// Adds a fault for every rule that a stand-in breaks: its ops fit their schemas, read tensors that
/// are there, and number what they make in order.
void CheckStandIns(CheckState& state, const Path& root);

}  // namespace dcsim
