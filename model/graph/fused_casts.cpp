#include "model/graph/fused_casts.h"

#include <algorithm>

namespace dcsim {
namespace {

bool IsAlike(const Value& value, const Value& other) {
  return value.shape == other.shape && value.strides == other.strides;
}

/// The cast of a whole tensor to another dtype and nothing else (is_cast_op in util.py): the dtype,
/// or nothing.
std::optional<DType> CastOf(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  const std::string_view target = graph.target(id);
  const bool casts = target == "aten::_to_copy" || target == "prims::convert_element_type";
  if (!casts || op.arguments.size() < 2 || !std::holds_alternative<DType>(op.arguments[1])) {
    return std::nullopt;
  }
  if (op.inputs.size() != 1 || op.outputs.size() != 1 || op.outputs.front().is_none() ||
      !IsAlike(graph.value(op.inputs.front()), graph.value(op.outputs.front()))) {
    return std::nullopt;
  }
  const bool more =
      std::any_of(op.arguments.begin() + 2, op.arguments.end(), [](const Argument& argument) {
        return !std::holds_alternative<std::monostate>(argument) && argument != Argument(false);
      });
  return more ? std::nullopt : std::optional(std::get<DType>(op.arguments[1]));
}

/// What the graphs do with one parameter.
struct ParamReads {
  std::vector<OpId> casts;
  bool otherwise = false;  // by other ops, by casts to several dtypes, twice in one graph
};

class CastFinder {
 public:
  explicit CastFinder(const Graph& graph)
      : graph_(graph),
        param_of_(AnalyseStep(graph).param_of),
        returned_(graph.values.size()),
        reads_(graph.params.size()) {
    for (const Subgraph& subgraph : graph.graphs) {
      for (const GraphOutput& output : subgraph.outputs) {
        returned_[output.value.index()] =
            returned_[output.value.index()] || output.kind != GraphOutputKind::kSaved;
      }
    }
  }

  std::vector<ParamReads> Find() {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      for (const ValueId input : graph_.ops[i].inputs) {
        const ParamId param = param_of_[graph_.storage_of(input).index()];
        if (!param.is_none()) {
          AddRead(OpId(i), input, param);
        }
      }
    }
    return std::move(reads_);
  }

 private:
  void AddRead(OpId id, ValueId input, ParamId param) {
    ParamReads& reads = reads_[param.index()];
    const auto dtype = CastOf(graph_, id);
    const bool whole = input == graph_.param(param).value;
    if (!dtype || !whole || ElementBytes(*dtype) >= ElementBytes(graph_.dtype(param)) ||
        returned_[graph_.op(id).outputs.front().index()]) {
      reads.otherwise = true;
      return;
    }
    const auto differs = [&](OpId other) {
      return CastOf(graph_, other) != dtype || graph_.op(other).graph == graph_.op(id).graph;
    };
    reads.otherwise =
        reads.otherwise || std::any_of(reads.casts.begin(), reads.casts.end(), differs);
    reads.casts.push_back(id);
  }

  const Graph& graph_;
  std::vector<ParamId> param_of_;  // by storage
  std::vector<bool> returned_;     // by value: to the caller
  std::vector<ParamReads> reads_;
};

}  // namespace

Graph FuseCasts(const Graph& graph) {
  const auto reads = CastFinder(graph).Find();
  Graph fused = graph;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (reads[i].otherwise || reads[i].casts.empty()) {
      continue;
    }
    for (const OpId cast : reads[i].casts) {
      Value& result = fused.values[graph.op(cast).outputs.front().index()];
      result.storage = graph.storage_of(graph.params[i].value);
      fused.params[i].gather_dtype = result.dtype;
    }
  }
  return fused;
}

bool IsFusedCast(const Graph& fused, const StepFacts& facts, OpId id) {
  const Op& op = fused.op(id);
  if (op.inputs.empty()) {
    return false;
  }
  const ParamId param = facts.param_of[fused.storage_of(op.inputs.front()).index()];
  return !param.is_none() && fused.param(param).gather_dtype.has_value() &&
         op.inputs.front() == fused.param(param).value;
}

}  // namespace dcsim
