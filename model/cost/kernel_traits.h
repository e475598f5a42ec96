#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "model/cost/element_access.h"
#include "model/cost/operators.h"
#include "model/ir/graph.h"

namespace dcsim {

/// Chooses the efficiency of the roofline, and what else runs as fast beside it.
enum class OpClass : std::uint8_t { kMatmul, kAttention, kAttentionBackward, kStreaming };

/// A fused attention: queries [batch, heads, queries, head_dim], keys [batch, key_heads, keys,
/// head_dim], values [batch, key_heads, keys, value_dim].
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  bool causal = false;  // and as many queries as keys
  bool masked = false;  // by a tensor that is added
  bool backward = false;
};

/// A matrix product: `products` alike ones [rows, depth] x [depth, columns]. Grouped ones
/// (aten::_grouped_mm, experts) share the rows, columns or depth that their offsets cut: as many
/// for each, since the graph does not know how tokens are routed.
struct ProductShape {
  std::int64_t products = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

/// The two factors of a matrix product.
struct ProductFactors {
  const Value* left = nullptr;
  const Value* right = nullptr;
};

/// Indices that one kernel sorts, or none. Source: PyTorch 2.11
/// aten/src/ATen/native/cuda/Embedding.cu.
constexpr std::int64_t kMostFewIndices = 3072;

/// What a launch reads of a value, in so many loops over it.
struct LaunchedRead {
  Bytes bytes;
  std::int64_t passes = 1;
};

/// What the kernels of an op do, read once from a graph, which must outlive it: what each cost of
/// them depends on. Tensors that are unused or undefined are null.
struct KernelTraits {
  OpId id;
  const Op* op = nullptr;
  const TritonKernel* triton = nullptr;  // of a launch
  std::vector<LaunchedRead> launched_reads;
  std::string_view target;
  KernelFamily family = KernelFamily::kUntold;
  bool backward = false;
  bool shown = false;  // by a committed profile; estimates of others are guesses
  OpLaunches launches;
  std::vector<const Value*> inputs;
  std::vector<const Value*> outputs;
  const Value* result = nullptr;  // the first output that is one

  /// Floating-point operations of matrix products, convolutions and fused attention, two a
  /// multiply-add; 0 for everything else.
  ///
  ///   mm, addmm         2 * m * n * k
  ///   bmm, baddbmm      2 * b * m * n * k
  ///   _grouped_mm       2 * m * n * k of all groups together
  ///   convolution       2 * elements of the result (of a transposed one, of the input) * elements
  ///                     of the kernel of one of their channels
  ///   its backward      that for each gradient of input and weight that it makes
  ///   attention         2 * batch * heads * queries * keys * (head_dim + value_dim), half of it
  ///                     when causal with as many queries as keys
  ///   its backward      the same of three head_dim and two value_dim (five products, not two)
  ///
  /// Source: PyTorch torch/utils/flop_counter.py, which counts causal attention whole.
  std::int64_t flops = 0;

  /// That its kernels must move at least: input and output tensors once each, an embedding's table
  /// only in the rows looked up, a loss' log-probabilities not at all: of each row one element is
  /// picked.
  Bytes bytes;
  Bytes written;  // of them, to its outputs

  ElementAccess access = ElementAccess::kPlain;  // with a result
  std::optional<ProductFactors> factors;         // of a matrix product (convolutions are none)
  std::optional<ProductShape> product;
  std::optional<AttentionShape> attention;
  bool transposed = false;                             // a convolution
  bool sorts = false;                                  // its indices
  const std::vector<std::int64_t>* numbers = nullptr;  // the first argument that is a list of them
  std::vector<const Value*> indices;                   // the first that is a list of tensors

  OpClass op_class() const;
  Bytes read() const { return std::max(Bytes(), bytes - written); }
  double elements() const { return static_cast<double>(result->numel()); }  // of the result
};

/// Throws Error for an op that multiplies matrices, by its name, and is none of the products whose
/// FLOPs are known, since its time would be that of copies; and for known ones whose tensors have
/// other dimensions.
KernelTraits TraitsOf(const Graph& graph, OpId id);

/// FLOPs of the ops that are no recomputation, without the scores that a fused attention's backward
/// computes again, by the dtype of their results: what model FLOPs utilisation counts. A backward
/// of attention so has twice its forward's. Under autocast the dtype is not the parameters'.
std::map<DType, std::int64_t> ModelFlopsByDType(const Graph& graph);

/// The sum over all dtypes.
std::int64_t CountModelFlops(const Graph& graph);

}  // namespace dcsim
