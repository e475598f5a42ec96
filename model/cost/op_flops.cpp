#include "model/cost/op_flops.h"

#include <algorithm>
#include <array>

#include "model/base/error.h"
#include "model/ir/operator_schema.h"

namespace dcsim {
namespace {

bool IsBackward(std::string_view target) {
  return target.ends_with("_backward");
}

bool IsAttention(std::string_view target) {
  return target.starts_with("aten::_scaled_dot_product_") ||
         target.starts_with("aten::_efficient_attention_") ||
         target.starts_with("aten::_flash_attention_");
}

bool IsGrouped(std::string_view target) {
  return target == "aten::_grouped_mm";
}

bool IsMatmul(std::string_view target) {
  constexpr std::array<std::string_view, 4> kTargets = {"aten::mm", "aten::addmm", "aten::bmm",
                                                        "aten::baddbmm"};
  return IsGrouped(target) || std::find(kTargets.begin(), kTargets.end(), target) != kTargets.end();
}

bool IsConvolution(std::string_view target) {
  return target == "aten::convolution" || target == "aten::convolution_backward";
}

/// Names of operators are words between underscores; these are of products, whatever is added to
/// them, and of networks that consist of products.
bool HasProductWord(std::string_view target) {
  constexpr std::array<std::string_view, 26> kWords = {
      "mm",        "addmm", "bmm",    "baddbmm", "addbmm",     "mv",       "addmv",
      "dot",       "vdot",  "inner",  "matmul",  "linear",     "bilinear", "trilinear",
      "attention", "attn",  "gemm",   "einsum",  "tensordot",  "cdist",    "rnn",
      "lstm",      "gru",   "linalg", "matrix",  "transformer"};
  constexpr std::array<std::string_view, 3> kNone = {
      // norms, and the gates of a recurrent cell
      "aten::linalg_vector_norm", "aten::_thnn_fused_lstm_cell", "aten::_thnn_fused_gru_cell"};
  const auto named = [target](std::string_view op) { return target.starts_with(op); };
  if (std::any_of(kNone.begin(), kNone.end(), named)) {
    return false;
  }
  const std::size_t space = target.find("::");
  std::string_view name = space == std::string_view::npos ? target : target.substr(space + 2);
  name = name.substr(0, name.find('.'));
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('_'), name.size());
    const std::string_view word = name.substr(0, end);
    // conv2d, conv_transpose3d, convolution
    if ((word.starts_with("conv") && !word.starts_with("conver")) ||
        std::find(kWords.begin(), kWords.end(), word) != kWords.end()) {
      return true;
    }
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return false;
}

/// A product must not pass for an op that multiplies nothing.
[[noreturn]] void FailOnProduct(const Graph& graph, OpId id, const std::string& why) {
  const std::string& module = graph.modules.empty() ? "" : graph.modules[graph.op(id).module];
  throw Error(graph.name + ": op " + std::to_string(id.index()) + ", " +
              std::string(graph.target(id)) + (module.empty() ? "" : " of " + module) + ": " + why);
}

/// Where each group of a grouped product ends stands behind its factors.
bool HasOffsets(const Graph& graph, OpId id) {
  return IsGrouped(graph.target(id)) && graph.op(id).inputs.size() > 2;
}

/// Groups are a dimension of one factor, or of the result when their offsets cut the depth.
ProductShape GroupedProduct(const Value& left, const Value& right, std::int64_t groups) {
  const auto extent = [](const Value& value, std::size_t from_back) {
    return value.shape[value.shape.size() - from_back];
  };
  ProductShape shape{std::max<std::int64_t>(groups, 1), extent(left, 2), extent(right, 1),
                     extent(left, 1)};
  const auto share = [&](std::int64_t whole) { return DivideUp(whole, shape.products); };
  if (left.shape.size() == 2 && right.shape.size() == 2) {
    shape.depth = share(shape.depth);
  } else if (left.shape.size() == 2) {
    shape.rows = share(shape.rows);
  } else if (right.shape.size() == 2) {
    shape.columns = share(shape.columns);
  }
  return shape;
}

/// A grouped product's is that of all groups: rows that divide unevenly are not rounded up.
std::int64_t MatmulFlops(const Graph& graph, OpId id) {
  const auto factors = FindFactors(graph, id);
  if (!factors) {
    FailOnProduct(graph, id, "expected two matrices to multiply");
  }
  const Value& left = graph.value(factors->left);
  const Value& right = graph.value(factors->right);
  if (left.shape.size() > right.shape.size()) {
    return 2 * right.numel() * left.shape[left.shape.size() - 2];
  }
  return 2 * left.numel() * right.shape.back();
}

/// The argument of that name, if the schema has one and the call gives it.
const Argument* FindArgument(const Graph& graph, const Op& op, std::string_view name) {
  const auto schema = op.launch ? std::nullopt : FindSchema(graph.schemas[op.schema]);
  for (std::size_t i = 0; schema && i < schema->arguments.size() && i < op.arguments.size(); ++i) {
    if (schema->arguments[i].name == name) {
      return &op.arguments[i];
    }
  }
  return nullptr;
}

/// Whether an argument of that name is a tensor.
bool HasTensor(const Graph& graph, const Op& op, std::string_view name) {
  const Argument* argument = FindArgument(graph, op, name);
  return argument != nullptr && std::holds_alternative<ValueId>(*argument);
}

/// Of a forward two products; of a backward the four of its mathematics, and the scores again.
std::int64_t AttentionFlops(const AttentionShape& of, bool recomputes_scores) {
  const std::int64_t forward = of.head_dim + of.value_dim;
  const std::int64_t again = recomputes_scores ? of.head_dim : 0;
  const std::int64_t depth = of.backward ? 2 * forward + again : forward;
  return 2 * of.batch * of.heads * of.queries * of.keys * depth / (of.causal ? 2 : 1);
}

/// The weight is [channels of the result, of the input / groups, ...]; transposed, the other way
/// round. A backward has the result's gradient first, and makes what its caller needs of the
/// gradients of input, weight and bias.
std::int64_t ConvolutionFlops(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  const bool backward = IsBackward(graph.target(id));
  const std::size_t first = backward ? 1 : 0;
  if (op.inputs.size() < first + 2 || op.outputs.empty()) {
    FailOnProduct(graph, id, "expected an input, a weight and a result");
  }
  const ValueId result = backward ? op.inputs[0] : op.first_output();
  const bool transposed = HasFlag(graph, op, "transposed");
  const Value& weight = graph.value(op.inputs[first + 1]);
  std::int64_t flops = 2 * graph.value(transposed ? op.inputs[first] : result).numel();
  for (std::size_t i = 1; i < weight.shape.size(); ++i) {
    flops *= weight.shape[i];
  }
  const auto made = [&](std::size_t i) {
    return i < op.outputs.size() && !op.outputs[i].is_none() ? 1 : 0;
  };
  return backward ? flops * (made(0) + made(1)) : flops;
}

/// What the op adds to the model's FLOPs: nothing that is computed a second time.
std::int64_t OwnModelFlops(const Graph& graph, OpId id) {
  if (graph.op(id).recompute) {
    return 0;
  }
  const auto attention = FindAttention(graph, id);
  return attention ? AttentionFlops(*attention, /*recomputes_scores=*/false)
                   : CountFlops(graph, id);
}

}  // namespace

bool HasFlag(const Graph& graph, const Op& op, std::string_view name) {
  const Argument* argument = FindArgument(graph, op, name);
  const bool* flag = argument != nullptr ? std::get_if<bool>(argument) : nullptr;
  return flag != nullptr && *flag;
}

std::optional<ProductFactors> FindFactors(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (!IsMatmul(graph.target(id)) || op.inputs.size() < 2) {
    return std::nullopt;
  }
  const std::size_t behind = HasOffsets(graph, id) ? 1 : 0;
  const std::size_t right = op.inputs.size() - 1 - behind;
  const ProductFactors factors{op.inputs[right - 1], op.inputs[right]};
  if (graph.value(factors.left).shape.size() < 2 || graph.value(factors.right).shape.empty()) {
    return std::nullopt;
  }
  return factors;
}

std::optional<ProductShape> FindProduct(const Graph& graph, OpId id) {
  const auto factors = FindFactors(graph, id);
  if (!factors) {
    return std::nullopt;
  }
  const Value& left = graph.value(factors->left);
  const Value& right = graph.value(factors->right);
  if (HasOffsets(graph, id)) {
    return GroupedProduct(left, right, graph.value(graph.op(id).inputs.back()).numel());
  }
  const std::size_t rank = left.shape.size();
  ProductShape shape{1, left.shape[rank - 2], right.shape.back(), left.shape[rank - 1]};
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    shape.products *= left.shape[i];
  }
  return shape;
}

std::optional<AttentionShape> FindAttention(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  const std::string_view target = graph.target(id);
  const bool backward = IsBackward(target);  // has the output's gradient first
  const std::size_t query_at = backward ? 1 : 0;
  if (!IsAttention(target) || op.inputs.size() < query_at + 3) {
    return std::nullopt;
  }
  const auto& query = graph.value(op.inputs[query_at]).shape;
  const auto& key = graph.value(op.inputs[query_at + 1]).shape;
  const auto& value = graph.value(op.inputs[query_at + 2]).shape;
  if (query.size() != 4 || key.size() != 4 || value.size() != 4) {
    return std::nullopt;
  }
  return AttentionShape{.batch = query[0],
                        .heads = query[1],
                        .key_heads = key[1],
                        .queries = query[2],
                        .keys = key[2],
                        .head_dim = query[3],
                        .value_dim = value[3],
                        .causal = query[2] == key[2] && HasFlag(graph, op, "is_causal"),
                        .masked = HasTensor(graph, op, "attn_bias"),
                        .backward = backward};
}

OpClass ClassifyOp(const Graph& graph, OpId id) {
  const std::string_view target = graph.target(id);
  if (IsMatmul(target) || IsConvolution(target)) {
    return OpClass::kMatmul;
  }
  if (IsAttention(target)) {
    return IsBackward(target) ? OpClass::kAttentionBackward : OpClass::kAttention;
  }
  // A Triton kernel is named after what it fuses, of which no product is one.
  if (!graph.op(id).launch && HasProductWord(target)) {
    FailOnProduct(graph, id,
                  "a product whose time and FLOPs are not modelled; aten::mm, addmm, bmm, baddbmm, "
                  "_grouped_mm, convolution and fused attention are");
  }
  return OpClass::kStreaming;
}

std::int64_t CountFlops(const Graph& graph, OpId id) {
  switch (ClassifyOp(graph, id)) {
    case OpClass::kMatmul:
      return IsConvolution(graph.target(id)) ? ConvolutionFlops(graph, id) : MatmulFlops(graph, id);
    case OpClass::kAttention:
    case OpClass::kAttentionBackward: {
      const auto shape = FindAttention(graph, id);
      if (!shape) {
        FailOnProduct(graph, id, "expected queries, keys and values of four dimensions");
      }
      return AttentionFlops(*shape, /*recomputes_scores=*/true);
    }
    case OpClass::kStreaming:
      return 0;
  }
  return 0;
}

Bytes CountBytes(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (op.launch) {
    Bytes moved;
    for (const auto* list : {&op.launch->reads, &op.launch->writes}) {
      for (const ValueBytes& each : *list) {
        moved += each.bytes;
      }
    }
    return moved;
  }
  const std::string_view target = graph.target(id);
  const bool lookup = target == "aten::embedding";
  const std::size_t picked = target == "aten::nll_loss_backward"  ? 1
                             : target == "aten::nll_loss_forward" ? 0
                                                                  : op.inputs.size();
  Bytes bytes;
  // An expanded tensor has more elements than its storage has bytes to read.
  const auto add = [&](ValueId value) {
    if (!value.is_none()) {
      const Bytes storage = graph.storage(graph.storage_of(value)).bytes;
      bytes += std::min(graph.value(value).bytes(), storage);
    }
  };
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool table = lookup && i == 0;
    if (i != picked) {
      add(table ? op.outputs.front() : op.inputs[i]);
    }
  }
  std::for_each(op.outputs.begin(), op.outputs.end(), add);
  return bytes;
}

std::map<DType, std::int64_t> ModelFlopsByDType(const Graph& graph) {
  std::map<DType, std::int64_t> flops;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const std::int64_t own = OwnModelFlops(graph, OpId(i));
    const ValueId result = graph.ops[i].first_output();
    if (own != 0 && !result.is_none()) {
      flops[graph.value(result).dtype] += own;
    }
  }
  return flops;
}

std::int64_t CountModelFlops(const Graph& graph) {
  std::int64_t sum = 0;
  for (const auto& [dtype, flops] : ModelFlopsByDType(graph)) {
    sum += flops;
  }
  return sum;
}

}  // namespace dcsim
