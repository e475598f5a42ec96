#pragma once

#include "model/ir/graph.h"

namespace dcsim {

/// Whether an op multiplies matrices by cuBLAS, so that PyTorch hands it a workspace. Grouped
/// products and attention are kernels of other libraries.
bool CallsCublas(const Graph& graph, OpId id);

/// Whether cuBLASLt adds a vector to the product, with a workspace of its own: addmm with a vector;
/// a matrix goes the way of other products. Source: PyTorch 2.11, addmm_out_cuda_impl in
/// aten/src/ATen/native/cuda/Blas.cpp, getCUDABlasLtWorkspace in
/// aten/src/ATen/cuda/CublasHandlePool.cpp.
bool AddsBias(const Graph& graph, OpId id);

}  // namespace dcsim
