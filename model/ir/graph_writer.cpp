#include "model/base/base64.h"
#include "model/ir/argument_reader.h"
#include "model/ir/document.h"
#include "model/ir/graph_names.h"
#include "model/ir/graph_reader.h"
#include "model/ir/kernel_reader.h"

namespace dcsim {
namespace {

template <typename List, typename Print>
Json PrintEach(const List& list, Print print) {
  Json array = Json::array();
  for (const auto& element : list) {
    array.push_back(print(element));
  }
  return array;
}

Json PrintParam(const Param& param) {
  Json json = {
      {"name", param.name}, {"value", param.value.index()}, {"requires_grad", param.requires_grad}};
  if (!param.tied.empty()) {
    json["tied"] = param.tied;
  }
  return json;
}

Json PrintInput(const Input& input) {
  Json fill = {{"kind", kFillKindNames[static_cast<std::size_t>(input.fill)]}};
  if (input.fill == FillKind::kTokens) {
    fill["vocabulary"] = input.vocabulary;
  }
  return {{"name", input.name}, {"value", input.value.index()}, {"fill", fill}};
}

Json PrintValue(const Value& value) {
  return {{"name", value.name},     {"dtype", DTypeName(value.dtype)},
          {"shape", value.shape},   {"strides", value.strides},
          {"offset", value.offset}, {"storage", value.storage.index()}};
}

Json PrintGraphInput(const GraphInput& input) {
  Json json = {{"kind", kGraphInputKindNames[static_cast<std::size_t>(input.kind)]},
               {"value", input.value.index()}};
  if (input.kind == GraphInputKind::kTangent) {
    json["of"] = input.of.index();
  }
  return json;
}

Json PrintGraphOutput(const GraphOutput& output) {
  Json json = {{"kind", kGraphOutputKindNames[static_cast<std::size_t>(output.kind)]},
               {"value", output.value.index()}};
  if (output.kind == GraphOutputKind::kOutput) {
    json["name"] = output.name;
    if (output.held) {
      json["held"] = true;
    }
  } else if (output.kind == GraphOutputKind::kGradient) {
    json["param"] = output.param.index();
  } else if (output.kind == GraphOutputKind::kTangent) {
    json["of"] = output.of.index();
  }
  return json;
}

Json PrintOp(const Op& op) {
  Json json = Json::object();
  if (op.launch) {
    PrintLaunch(*op.launch, json);
  } else {
    json["schema"] = op.schema;
  }
  json["args"] = PrintEach(op.arguments, PrintArgument);
  json["outputs"] = PrintEach(
      op.outputs, [](ValueId id) { return id.is_none() ? Json(nullptr) : Json(id.index()); });
  json["module"] = op.module;
  if (!op.reuses.empty()) {
    json["reuses"] = PrintEach(op.reuses, [](ValueId id) { return id.index(); });
  }
  if (op.returns_list) {
    json["list"] = true;
  }
  if (op.recompute) {
    json["recompute"] = true;
  }
  return json;
}

Json PrintSubgraph(const Graph& graph, const Subgraph& subgraph) {
  Json json = {{"direction", kDirectionNames[static_cast<std::size_t>(subgraph.direction)]}};
  if (subgraph.direction == Direction::kBackward) {
    json["forward"] = subgraph.forward.index();
  }
  json["inputs"] = PrintEach(subgraph.inputs, PrintGraphInput);
  json["outputs"] = PrintEach(subgraph.outputs, PrintGraphOutput);
  json["ops"] =
      PrintEach(std::span(graph.ops).subspan(subgraph.first_op, subgraph.op_count), PrintOp);
  return json;
}

Json PrintBuffer(const ConstantBuffer& buffer) {
  return {
      {"name", buffer.name}, {"value", buffer.value.index()}, {"data", PrintBase64(buffer.data)}};
}

/// The note's JSON, or an empty object for graphs that no recorder made.
Json NoteOr(const std::string& text) {
  return text.empty() ? Json::object() : Json::parse(text);
}

}  // namespace

std::string PrintGraph(const Graph& graph) {
  Json json = {{"format", "dc-graph/1"},
               {"name", graph.name},
               {"recorder", NoteOr(graph.notes.recorder)},
               {"options", NoteOr(graph.notes.options)},
               {"tokens", graph.tokens}};
  if (graph.compiled) {
    json["backend"] = PrintBackend(*graph.compiled);
  }
  json["params"] = PrintEach(graph.params, PrintParam);
  json["buffers"] = PrintEach(graph.buffers, PrintBuffer);
  json["inputs"] = PrintEach(graph.inputs, PrintInput);
  json["storages"] =
      PrintEach(graph.storages, [](const Storage& storage) { return storage.bytes.count(); });
  json["values"] = PrintEach(graph.values, PrintValue);
  json["schemas"] = graph.schemas;
  json["modules"] = graph.modules;
  if (graph.compiled) {
    json["kernels"] = PrintEach(graph.kernels, PrintKernel);
  }
  json["graphs"] = PrintEach(
      graph.graphs, [&graph](const Subgraph& subgraph) { return PrintSubgraph(graph, subgraph); });
  constexpr bool kAscii = true;  // as the recorder writes names: é is \u00e9
  return json.dump(-1, ' ', kAscii);
}

}  // namespace dcsim
