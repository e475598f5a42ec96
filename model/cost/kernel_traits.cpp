#include "model/cost/kernel_traits.h"

#include <algorithm>

#include "model/base/error.h"
#include "model/ir/operator_schema.h"

namespace dcsim {
namespace {

/// A product must not pass for an op that multiplies nothing.
[[noreturn]] void FailOnProduct(const Graph& graph, OpId id, const std::string& why) {
  const std::string& module = graph.modules.empty() ? "" : graph.modules[graph.op(id).module];
  throw Error(graph.name + ": op " + std::to_string(id.index()) + ", " +
              std::string(graph.target(id)) + (module.empty() ? "" : " of " + module) + ": " + why);
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

/// Whether the call says true for an argument of that name.
bool HasFlag(const Graph& graph, const Op& op, std::string_view name) {
  const Argument* argument = FindArgument(graph, op, name);
  const bool* flag = argument != nullptr ? std::get_if<bool>(argument) : nullptr;
  return flag != nullptr && *flag;
}

/// Whether an argument of that name is a tensor.
bool HasTensor(const Graph& graph, const Op& op, std::string_view name) {
  const Argument* argument = FindArgument(graph, op, name);
  return argument != nullptr && std::holds_alternative<ValueId>(*argument);
}

/// Where each group of a grouped product ends stands behind its factors.
bool HasOffsets(const KernelTraits& of) {
  return of.family == KernelFamily::kGroupedProduct && of.inputs.size() > 2;
}

std::optional<ProductFactors> FindFactors(const KernelTraits& of) {
  if (of.inputs.size() < 2) {
    return std::nullopt;
  }
  const std::size_t behind = HasOffsets(of) ? 1 : 0;
  const std::size_t right = of.inputs.size() - 1 - behind;
  const ProductFactors factors{of.inputs[right - 1], of.inputs[right]};
  if (factors.left->shape.size() < 2 || factors.right->shape.empty()) {
    return std::nullopt;
  }
  return factors;
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

ProductShape ShapeOf(const KernelTraits& of) {
  const auto& [left, right] = *of.factors;
  if (HasOffsets(of)) {
    return GroupedProduct(*left, *right, of.inputs.back()->numel());
  }
  const std::size_t rank = left->shape.size();
  ProductShape shape{1, left->shape[rank - 2], right->shape.back(), left->shape[rank - 1]};
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    shape.products *= left->shape[i];
  }
  return shape;
}

/// A grouped product's is that of all groups: rows that divide unevenly are not rounded up.
std::int64_t ProductFlops(const ProductFactors& of) {
  if (of.left->shape.size() > of.right->shape.size()) {
    return 2 * of.right->numel() * of.left->shape[of.left->shape.size() - 2];
  }
  return 2 * of.left->numel() * of.right->shape.back();
}

void SetProduct(const Graph& graph, KernelTraits& of) {
  of.factors = FindFactors(of);
  if (!of.factors) {
    FailOnProduct(graph, of.id, "expected two matrices to multiply");
  }
  of.product = ShapeOf(of);
  of.flops = ProductFlops(*of.factors);
}

/// Of a forward two products; of a backward the four of its mathematics, and the scores again.
std::int64_t AttentionFlops(const AttentionShape& of, bool recomputes_scores) {
  const std::int64_t forward = of.head_dim + of.value_dim;
  const std::int64_t again = recomputes_scores ? of.head_dim : 0;
  const std::int64_t depth = of.backward ? 2 * forward + again : forward;
  return 2 * of.batch * of.heads * of.queries * of.keys * depth / (of.causal ? 2 : 1);
}

/// A backward has the output's gradient first.
void SetAttention(const Graph& graph, KernelTraits& of) {
  const std::size_t first = of.backward ? 1 : 0;
  const auto has_shape = [](const Value* value) { return value->shape.size() == 4; };
  if (of.inputs.size() < first + 3 ||
      !std::all_of(&of.inputs[first], &of.inputs[first] + 3, has_shape)) {
    FailOnProduct(graph, of.id, "expected queries, keys and values of four dimensions");
  }
  const auto& query = of.inputs[first]->shape;
  const auto& key = of.inputs[first + 1]->shape;
  const auto& value = of.inputs[first + 2]->shape;
  of.attention = AttentionShape{.batch = query[0],
                                .heads = query[1],
                                .key_heads = key[1],
                                .queries = query[2],
                                .keys = key[2],
                                .head_dim = query[3],
                                .value_dim = value[3],
                                .causal = query[2] == key[2] && HasFlag(graph, *of.op, "is_causal"),
                                .masked = HasTensor(graph, *of.op, "attn_bias"),
                                .backward = of.backward};
  of.flops = AttentionFlops(*of.attention, /*recomputes_scores=*/true);
}

/// The weight is [channels of the result, of the input / groups, ...]; transposed, the other way
/// round. A backward has the result's gradient first, and makes what its caller needs of the
/// gradients of input, weight and bias.
void SetConvolution(const Graph& graph, KernelTraits& of) {
  const std::size_t first = of.backward ? 1 : 0;
  if (of.inputs.size() < first + 2 || of.outputs.empty() ||
      (!of.backward && of.result == nullptr)) {
    FailOnProduct(graph, of.id, "expected an input, a weight and a result");
  }
  of.transposed = HasFlag(graph, *of.op, "transposed");
  const Value* result = of.backward ? of.inputs[0] : of.result;
  const Value& weight = *of.inputs[first + 1];
  of.flops = 2 * (of.transposed ? of.inputs[first] : result)->numel();
  for (std::size_t i = 1; i < weight.shape.size(); ++i) {
    of.flops *= weight.shape[i];
  }
  if (of.backward) {
    const std::size_t products = std::min<std::size_t>(2, of.outputs.size());
    of.flops *= std::count_if(&of.outputs[0], &of.outputs[0] + products,
                              [](const Value* made) { return made != nullptr; });
  }
}

/// Bytes of a tensor that is read or written. An expanded one has more elements than its storage
/// has bytes to read.
Bytes BytesToMove(const Graph& graph, ValueId value) {
  return value.is_none()
             ? Bytes()
             : std::min(graph.value(value).bytes(), graph.storage(graph.storage_of(value)).bytes);
}

/// How often a launch reads a value: in as many loops as its argument is.
std::int64_t PassesOver(const Graph& graph, const KernelTraits& of, ValueId value) {
  std::int64_t passes = 1;
  for (std::size_t i = 0; i < of.triton->signature.size(); ++i) {
    const auto* argument = std::get_if<ValueId>(&of.op->arguments[i]);
    const auto found = of.triton->passes.find(of.triton->signature[i].name);
    // An argument that is worked on in place is the value that lies there afterwards.
    if (argument != nullptr && found != of.triton->passes.end() &&
        graph.storage_of(*argument) == graph.storage_of(value)) {
      passes = std::max(passes, found->second);
    }
  }
  return passes;
}

void SetLaunch(const Graph& graph, KernelTraits& of) {
  of.triton = &graph.kernel(*of.op->launch);
  for (const ValueBytes& write : of.op->launch->writes) {
    of.written += write.bytes;
  }
  of.bytes = of.written;
  for (const ValueBytes& read : of.op->launch->reads) {
    of.launched_reads.push_back({read.bytes, PassesOver(graph, of, read.value)});
    of.bytes += read.bytes;
  }
}

void SetBytes(const Graph& graph, int unread, KernelTraits& of) {
  const Op& op = *of.op;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const bool table = of.family == KernelFamily::kEmbedding && i == 0;
    if (static_cast<int>(i) != unread) {
      of.bytes += BytesToMove(graph, table ? op.outputs.front() : op.inputs[i]);
    }
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    of.bytes += BytesToMove(graph, op.outputs[i]);
    of.written += of.outputs[i] == nullptr ? Bytes() : of.outputs[i]->bytes();
  }
}

std::vector<const Value*> TensorsOf(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<const Value*> tensors(ids.size());
  std::transform(ids.begin(), ids.end(), tensors.begin(),
                 [&](ValueId id) { return id.is_none() ? nullptr : &graph.value(id); });
  return tensors;
}

/// Whether an index_put adds what it puts, for which its indices are sorted; an embedding's
/// backward adds few one after the other.
bool SortsIndices(const KernelTraits& of) {
  if (of.family == KernelFamily::kIndexPut) {
    return std::any_of(of.op->arguments.begin(), of.op->arguments.end(),
                       [](const Argument& argument) {
                         const bool* flag = std::get_if<bool>(&argument);
                         return flag != nullptr && *flag;
                       });
  }
  return of.family == KernelFamily::kEmbeddingBackward &&
         of.inputs.back()->numel() > kMostFewIndices;
}

void SetArguments(const Graph& graph, KernelTraits& of) {
  for (const Argument& argument : of.op->arguments) {
    const auto* tensors = std::get_if<std::vector<ValueId>>(&argument);
    if (tensors != nullptr && of.indices.empty()) {
      of.indices = TensorsOf(graph, *tensors);
    }
    if (of.numbers == nullptr) {
      of.numbers = std::get_if<std::vector<std::int64_t>>(&argument);
    }
  }
}

KernelFamily FamilyOf(const Graph& graph, OpId id, const Operator* known) {
  if (graph.op(id).launch) {
    return KernelFamily::kTriton;
  }
  const auto family = known != nullptr ? known->family : FamilyByName(graph.target(id));
  if (!family) {
    FailOnProduct(graph, id,
                  "a product whose time and FLOPs are not modelled; aten::mm, addmm, bmm, baddbmm, "
                  "_grouped_mm, convolution and fused attention are");
  }
  return *family;
}

/// What the op adds to the model's FLOPs: nothing that is computed a second time.
std::int64_t OwnModelFlops(const KernelTraits& of) {
  if (of.op->recompute) {
    return 0;
  }
  return of.attention ? AttentionFlops(*of.attention, /*recomputes_scores=*/false) : of.flops;
}

}  // namespace

OpClass KernelTraits::op_class() const {
  switch (family) {
    case KernelFamily::kProduct:
    case KernelFamily::kAddedProducts:
    case KernelFamily::kGroupedProduct:
    case KernelFamily::kConvolution:
      return OpClass::kMatmul;
    case KernelFamily::kFlashAttention:
    case KernelFamily::kEfficientAttention:
    case KernelFamily::kCudnnAttention:
      return backward ? OpClass::kAttentionBackward : OpClass::kAttention;
    default:
      return OpClass::kStreaming;
  }
}

KernelTraits TraitsOf(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  KernelTraits of;
  of.id = id;
  of.op = &op;
  of.target = graph.target(id);
  const Operator* known = op.launch ? nullptr : FindOperator(of.target);
  of.family = FamilyOf(graph, id, known);
  of.backward = of.target.find("backward") != std::string_view::npos;
  of.shown = known != nullptr;
  of.inputs = TensorsOf(graph, op.inputs);
  of.outputs = TensorsOf(graph, op.outputs);
  of.result = op.first_output().is_none() ? nullptr : &graph.value(op.first_output());
  if (op.launch) {
    SetLaunch(graph, of);
    return of;
  }
  SetArguments(graph, of);
  SetBytes(graph, known == nullptr ? -1 : known->unread, of);
  if (const OpClass op_class = of.op_class(); op_class != OpClass::kStreaming) {
    const bool attends = op_class != OpClass::kMatmul;
    (attends                                   ? SetAttention
     : of.family == KernelFamily::kConvolution ? SetConvolution
                                               : SetProduct)(graph, of);
  } else if (of.inputs.empty() || of.result == nullptr) {
    of.family = KernelFamily::kUntold;
  } else {
    of.access = AccessOf(of.inputs, *of.result);
  }
  of.sorts = SortsIndices(of);
  if (known != nullptr) {
    of.launches = of.sorts ? known->sorting : known->launches;
  }
  return of;
}

std::map<DType, std::int64_t> ModelFlopsByDType(const Graph& graph) {
  std::map<DType, std::int64_t> flops;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const KernelTraits of = TraitsOf(graph, OpId(i));
    const std::int64_t own = OwnModelFlops(of);
    if (own != 0 && of.result != nullptr) {
      flops[of.result->dtype] += own;
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
