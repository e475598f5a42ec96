#include "model/graph/step_facts.h"

#include <algorithm>

#include "model/ir/operator_schema.h"

namespace dcsim {
namespace {

void MarkResidents(const Graph& graph, StepFacts& facts, std::vector<bool>& exists) {
  const auto mark = [&](ValueId value) {
    exists[graph.storage_of(value).index()] = true;
    return graph.storage_of(value).index();
  };
  for (std::size_t i = 0; i < graph.params.size(); ++i) {
    facts.param_of[mark(graph.params[i].value)] = ParamId(i);
  }
  for (const ConstantBuffer& buffer : graph.buffers) {
    facts.is_constant[mark(buffer.value)] = true;
  }
  for (const Input& input : graph.inputs) {
    facts.is_constant[mark(input.value)] = true;
  }
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphInput& input : subgraph.inputs) {
      if (input.kind == GraphInputKind::kTangent) {
        mark(input.value);
      }
    }
  }
}

/// By schema: whether the operator changes an argument. Its outputs alias, and yet a kernel runs.
std::vector<bool> FindWriters(const Graph& graph) {
  std::vector<bool> writes;
  for (const std::string& text : graph.schemas) {
    const auto schema = FindSchema(text);
    writes.push_back(schema && std::any_of(schema->arguments.begin(), schema->arguments.end(),
                                           [](const SchemaField& field) { return field.writes; }));
  }
  return writes;
}

void AnalyseOp(
    const Graph& graph, OpId id, bool writes, StepFacts& facts, std::vector<bool>& exists) {
  const Op& op = graph.op(id);
  bool view = !op.outputs.empty() && !writes && !op.launch && op.reuses.empty();
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ValueId output = op.outputs[i];
    if (output.is_none()) {
      view = false;
      continue;
    }
    const StorageId storage = graph.storage_of(output);
    if (exists[storage.index()]) {
      continue;
    }
    view = false;
    exists[storage.index()] = true;
    facts.producer[storage.index()] = id;
    facts.on_host[storage.index()] = IsMadeOnHost(graph, id, i);
    if (!facts.on_host[storage.index()]) {
      facts.allocates[id.index()].push_back(storage);
    }
  }
  facts.is_view[id.index()] = view;
}

}  // namespace

StepFacts AnalyseStep(const Graph& graph) {
  StepFacts facts;
  facts.is_view.resize(graph.ops.size());
  facts.producer.resize(graph.storages.size());
  facts.param_of.resize(graph.storages.size());
  facts.is_constant.resize(graph.storages.size());
  facts.on_host.resize(graph.storages.size());
  facts.allocates.resize(graph.ops.size());
  std::vector<bool> exists(graph.storages.size());
  MarkResidents(graph, facts, exists);
  const auto writers = FindWriters(graph);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    AnalyseOp(graph, OpId(i), !op.launch && writers[op.schema], facts, exists);
  }
  return facts;
}

bool IsMadeOnHost(const Graph& graph, OpId id, std::size_t output) {
  constexpr std::size_t kSeed = 2;
  constexpr std::size_t kOffset = 3;
  const std::string_view target = graph.target(id);
  return (output == kSeed || output == kOffset) &&
         (target == "aten::_scaled_dot_product_efficient_attention" ||
          target == "aten::_efficient_attention_forward");
}

ValueId LossOf(const Graph& graph) {
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kLoss) {
        return output.value;
      }
    }
  }
  return {};
}

std::vector<ParamId> ParamsWithGradients(const Graph& graph) {
  std::vector<ParamId> params(graph.values.size());
  for (const Subgraph& subgraph : graph.graphs) {
    for (const GraphOutput& output : subgraph.outputs) {
      if (output.kind == GraphOutputKind::kGradient) {
        params[output.value.index()] = output.param;
      }
    }
  }
  return params;
}

std::vector<UseSpan> FindUses(const Graph& graph, const std::vector<OpId>& order) {
  std::vector<UseSpan> spans(graph.storages.size());
  for (std::size_t position = 0; position < order.size(); ++position) {
    const auto touch = [&](ValueId value) {
      if (value.is_none()) {
        return;
      }
      UseSpan& span = spans[graph.storage_of(value).index()];
      span.first = span.used ? span.first : position;
      span.last = position;
      span.used = true;
    };
    const Op& op = graph.op(order[position]);
    std::for_each(op.inputs.begin(), op.inputs.end(), touch);
    std::for_each(op.outputs.begin(), op.outputs.end(), touch);
  }
  return spans;
}

}  // namespace dcsim
