#pragma once

#include <string>

#include "model/ir/graph.h"
#include "model/machine/cluster.h"

namespace dcsim {

/// The GPU of TestCluster (cluster_document.h) with `kernels` of round numbers: half of its 2 TB/s
/// for dense tensors, a fifth for anything else; 100 elements a ns where kernels go element by
/// element, 200 broadcast in half precision, 50 permuted, 40 converted, 20 transposed, 25
/// concatenated, 1,000 filled; products start in 3 us, at half of 1e15 FLOP/s, a tenth unaligned (a
/// twentieth transposed), a fifth half aligned (of 1e14 in float32), with tiles of whatever size
/// equally fast.
GpuSpec GpuWithKernels();

/// A graph of one op that makes y, behind what `before` makes.
Graph OneOp(const std::string& tensors, const std::string& op, const std::string& before = "");

/// The op that makes y.
OpId MakerOf(const Graph& graph);

/// The graph with another layout of the value of that name.
Graph WithStrides(Graph graph, const std::string& name, const std::vector<std::int64_t>& strides);

/// The roofline's time of y's maker on GpuWithKernels, ns.
std::int64_t TimeOf(const Graph& graph);

}  // namespace dcsim
