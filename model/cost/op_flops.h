#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "model/ir/graph.h"

namespace dcsim {

/// What an op computes; chooses the efficiency of the roofline.
enum class OpClass : std::uint8_t { kMatmul, kAttention, kAttentionBackward, kStreaming };

/// Throws Error for an op that multiplies matrices, by its name, and is none of those that
/// CountFlops knows: its time would be that of copies.
OpClass ClassifyOp(const Graph& graph, OpId id);

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

/// Nothing for an op that is no fused attention, or whose tensors have other dimensions.
std::optional<AttentionShape> FindAttention(const Graph& graph, OpId id);

/// A matrix product: `products` alike ones [rows, depth] x [depth, columns]. Grouped ones
/// (aten::_grouped_mm, experts) share the rows, columns or depth that their offsets cut: as many
/// for each, since the graph does not know how tokens are routed.
struct ProductShape {
  std::int64_t products = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

/// Nothing for an op that is no matrix product (convolutions are none).
std::optional<ProductShape> FindProduct(const Graph& graph, OpId id);

/// Whether the op's schema has an argument of that name and the call says true.
bool HasFlag(const Graph& graph, const Op& op, std::string_view name);

/// The two factors of a matrix product.
struct ProductFactors {
  ValueId left;
  ValueId right;
};
std::optional<ProductFactors> FindFactors(const Graph& graph, OpId id);

/// Floating-point operations of matrix products, convolutions and fused attention, two a
/// multiply-add; 0 for everything else.
///
///   mm, addmm         2 * m * n * k
///   bmm, baddbmm      2 * b * m * n * k
///   _grouped_mm       2 * m * n * k of all groups together
///   convolution       2 * elements of the result (of a transposed one, of the input) * elements of
///                     the kernel of one of their channels
///   its backward      that for each gradient of input and weight that it makes
///   attention         2 * batch * heads * queries * keys * (head_dim + value_dim), half of it when
///                     causal with as many queries as keys
///   its backward      the same of three head_dim and two value_dim (five products instead of two)
///
/// Throws Error for products that it does not know (ClassifyOp), and for known ones whose tensors
/// have other dimensions.
///
/// Source: PyTorch torch/utils/flop_counter.py, which counts causal attention whole.
std::int64_t CountFlops(const Graph& graph, OpId id);

/// Bytes that an op's kernels must move at least: its input and output tensors once each, an
/// embedding's table only in the rows looked up, a loss' log-probabilities not at all: of each row
/// one element is picked.
Bytes CountBytes(const Graph& graph, OpId id);

/// CountFlops over the ops that are no recomputation, without the scores that a fused attention's
/// backward computes again, by the dtype of their results: what model FLOPs utilisation counts. A
/// backward of attention so has twice its forward's. Under autocast the dtype is not the
/// parameters'.
std::map<DType, std::int64_t> ModelFlopsByDType(const Graph& graph);

/// The sum over all dtypes.
std::int64_t CountModelFlops(const Graph& graph);

}  // namespace dcsim
