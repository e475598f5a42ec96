#include "model/ir/graph_reader.h"

#include <algorithm>

#include "model/base/base64.h"
#include "model/ir/argument_reader.h"
#include "model/ir/document.h"
#include "model/ir/graph_checks.h"
#include "model/ir/graph_names.h"
#include "model/ir/kernel_reader.h"
#include "model/ir/name_reader.h"

namespace dcsim {
namespace {

constexpr std::string_view kFormat = "dc-graph/1";

/// The graph under construction and where its faults go.
struct ReadState {
  Graph graph;
  Faults& faults;
};

/// Calls `read(element, path)` for each element of the array at `key`.
template <typename Read>
void ReadEach(ObjectReader& object, std::string_view key, Read read) {
  const Json* list = object.RequireArray(key);
  if (list == nullptr) {
    return;
  }
  const Path path = object.At(key);
  for (std::size_t i = 0; i < list->size(); ++i) {
    read((*list)[i], Path(path, i));
  }
}

std::vector<std::int64_t> ReadExtents(ObjectReader& object, std::string_view key) {
  std::vector<std::int64_t> extents;
  ReadEach(object, key, [&](const Json& element, const Path& path) {
    const auto extent = ReadInteger(element, path, object.faults());
    if (extent && (*extent < 0 || *extent > kMostElements)) {
      object.faults().Add(path, "expected a count from 0 to 2^48");
    }
    extents.push_back(extent.value_or(0));
  });
  return extents;
}

std::size_t ReadIndex(ObjectReader& object,
                      std::string_view key,
                      std::size_t count,
                      std::string_view what) {
  std::int64_t index = 0;
  if (object.Required(key, ReadInteger, index) &&
      (index < 0 || static_cast<std::size_t>(index) >= count)) {
    object.faults().Add(object.At(key), "expected an index into " + std::string(what) +
                                            ", which has " + std::to_string(count) + " entries");
    return 0;
  }
  return static_cast<std::size_t>(index);
}

ValueId ReadValueField(ReadState& state, ObjectReader& object, std::string_view key) {
  const Json* value = object.Require(key);
  return value == nullptr
             ? ValueId::None()
             : ReadValueId(*value, state.graph.values.size(), object.At(key), state.faults);
}

void ReadStorages(ReadState& state, ObjectReader& document) {
  ReadEach(document, "storages", [&](const Json& element, const Path& path) {
    const auto bytes = ReadInteger(element, path, state.faults);
    if (bytes && (*bytes < 0 || *bytes > 8 * kMostElements)) {
      state.faults.Add(path, "expected bytes from 0 to 2^51");
    }
    state.graph.storages.push_back({Bytes(bytes.value_or(0))});
  });
}

void ReadValue(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  Value value;
  object.Required("name", ReadString, value.name);
  if (const Json* dtype = object.Require("dtype")) {
    const auto index = ReadChoice(*dtype, DTypeNames(), object.At("dtype"), state.faults);
    value.dtype = static_cast<DType>(index.value_or(0));
  }
  value.shape = ReadExtents(object, "shape");
  value.strides = ReadExtents(object, "strides");
  object.Required("offset", ReadInteger, value.offset);
  value.storage = StorageId(ReadIndex(object, "storage", state.graph.storages.size(), "storages"));
  object.RejectUnknown();
  if (value.strides.size() != value.shape.size()) {
    state.faults.Add(path, "expected as many strides as dimensions");
  }
  if (value.offset < 0) {
    state.faults.Add(path, "expected an offset of 0 or more");
  }
  if (!IsCountable(value.shape)) {
    state.faults.Add(path, "expected at most 2^48 elements");
    value.shape.clear();
    value.strides.clear();
  }
  state.graph.values.push_back(std::move(value));
}

void ReadParam(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  Param param;
  object.Required("name", ReadString, param.name);
  param.value = ReadValueField(state, object, "value");
  object.Optional("requires_grad", ReadBool, param.requires_grad);
  if (object.Find("tied") != nullptr) {
    ReadEach(object, "tied", [&](const Json& name, const Path& here) {
      param.tied.push_back(ReadString(name, here, state.faults).value_or(""));
    });
  }
  object.RejectUnknown();
  state.graph.params.push_back(std::move(param));
}

void ReadBuffer(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  ConstantBuffer buffer;
  std::string data;
  object.Required("name", ReadString, buffer.name);
  buffer.value = ReadValueField(state, object, "value");
  if (object.Required("data", ReadString, data)) {
    auto bytes = FindBase64(data);
    if (!bytes) {
      state.faults.Add(object.At("data"), "expected base64");
    }
    buffer.data = std::move(bytes).value_or("");
  }
  object.RejectUnknown();
  state.graph.buffers.push_back(std::move(buffer));
}

void ReadInput(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  Input input;
  object.Required("name", ReadString, input.name);
  input.value = ReadValueField(state, object, "value");
  if (const Json* fill = object.Require("fill")) {
    const Path here = object.At("fill");
    ObjectReader fields(*fill, here, state.faults);
    if (const Json* kind = fields.Require("kind")) {
      const auto index = ReadChoice(*kind, kFillKindNames, fields.At("kind"), state.faults);
      input.fill = static_cast<FillKind>(index.value_or(0));
    }
    if (input.fill == FillKind::kTokens) {
      if (fields.Required("vocabulary", ReadInteger, input.vocabulary) && input.vocabulary < 1) {
        state.faults.Add(fields.At("vocabulary"), "expected a count of 1 or more");
      }
    }
    fields.RejectUnknown();
  }
  object.RejectUnknown();
  state.graph.inputs.push_back(std::move(input));
}

GraphInput ReadGraphInput(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  GraphInput input;
  if (const Json* kind = object.Require("kind")) {
    const auto index = ReadChoice(*kind, kGraphInputKindNames, object.At("kind"), state.faults);
    input.kind = static_cast<GraphInputKind>(index.value_or(0));
  }
  input.value = ReadValueField(state, object, "value");
  if (input.kind == GraphInputKind::kTangent) {
    input.of = ReadValueField(state, object, "of");
  }
  object.RejectUnknown();
  return input;
}

GraphOutput ReadGraphOutput(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  GraphOutput output;
  if (const Json* kind = object.Require("kind")) {
    const auto index = ReadChoice(*kind, kGraphOutputKindNames, object.At("kind"), state.faults);
    output.kind = static_cast<GraphOutputKind>(index.value_or(0));
  }
  output.value = ReadValueField(state, object, "value");
  if (output.kind == GraphOutputKind::kOutput) {
    object.Required("name", ReadString, output.name);
    object.Optional("held", ReadBool, output.held);
  } else if (output.kind == GraphOutputKind::kGradient) {
    output.param = ParamId(ReadIndex(object, "param", state.graph.params.size(), "params"));
  } else if (output.kind == GraphOutputKind::kTangent) {
    output.of = ReadValueField(state, object, "of");
  }
  object.RejectUnknown();
  return output;
}

/// Every tensor among the arguments, in order.
std::vector<ValueId> TensorInputs(const std::vector<Argument>& arguments) {
  std::vector<ValueId> inputs;
  for (const Argument& argument : arguments) {
    if (const auto* id = std::get_if<ValueId>(&argument); id != nullptr && !id->is_none()) {
      inputs.push_back(*id);
    } else if (const auto* ids = std::get_if<std::vector<ValueId>>(&argument)) {
      std::copy_if(ids->begin(), ids->end(), std::back_inserter(inputs),
                   [](ValueId each) { return !each.is_none(); });
    }
  }
  return inputs;
}

void ReadOp(ReadState& state, GraphId graph, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  const std::size_t value_count = state.graph.values.size();
  Op op;
  op.graph = graph;
  const bool launches = element.is_object() && element.contains("kernel");
  if (!launches) {
    op.schema = static_cast<std::uint32_t>(
        ReadIndex(object, "schema", state.graph.schemas.size(), "schemas"));
  }
  ReadEach(object, "args", [&](const Json& argument, const Path& here) {
    op.arguments.push_back(ReadArgument(argument, value_count, here, state.faults));
  });
  op.inputs = TensorInputs(op.arguments);
  ReadEach(object, "outputs", [&](const Json& output, const Path& here) {
    op.outputs.push_back(output.is_null() ? ValueId::None()
                                          : ReadValueId(output, value_count, here, state.faults));
  });
  op.module = static_cast<std::uint32_t>(
      ReadIndex(object, "module", state.graph.modules.size(), "modules"));
  if (const Json* reuses = object.FindArray("reuses")) {
    const Path here = object.At("reuses");
    for (std::size_t i = 0; i < reuses->size(); ++i) {
      op.reuses.push_back(ReadValueId((*reuses)[i], value_count, Path(here, i), state.faults));
    }
  }
  if (launches) {
    ReadLaunch(object, state.graph, op);
  }
  object.Optional("list", ReadBool, op.returns_list);
  object.Optional("recompute", ReadBool, op.recompute);
  object.RejectUnknown();
  state.graph.ops.push_back(std::move(op));
}

void ReadSubgraph(ReadState& state, const Json& element, const Path& path) {
  ObjectReader object(element, path, state.faults);
  const GraphId id(state.graph.graphs.size());
  Subgraph subgraph;
  if (const Json* direction = object.Require("direction")) {
    const auto index =
        ReadChoice(*direction, kDirectionNames, object.At("direction"), state.faults);
    subgraph.direction = static_cast<Direction>(index.value_or(0));
  }
  if (subgraph.direction == Direction::kBackward) {
    subgraph.forward =
        GraphId(ReadIndex(object, "forward", state.graph.graphs.size(), "the graphs before it"));
  }
  ReadEach(object, "inputs", [&](const Json& input, const Path& here) {
    subgraph.inputs.push_back(ReadGraphInput(state, input, here));
  });
  ReadEach(object, "outputs", [&](const Json& output, const Path& here) {
    subgraph.outputs.push_back(ReadGraphOutput(state, output, here));
  });
  subgraph.first_op = state.graph.ops.size();
  ReadEach(object, "ops", [&](const Json& op, const Path& here) { ReadOp(state, id, op, here); });
  subgraph.op_count = state.graph.ops.size() - subgraph.first_op;
  object.RejectUnknown();
  state.graph.graphs.push_back(std::move(subgraph));
}

void ReadStrings(ObjectReader& document, std::string_view key, std::vector<std::string>& target) {
  ReadEach(document, key, [&](const Json& element, const Path& path) {
    target.push_back(ReadString(element, path, document.faults()).value_or(""));
  });
}

/// Tokens of a micro-step; with as many micro-steps and ranks as plans have, 64 bits hold all.
constexpr std::int64_t kMostTokens = 1'000'000'000'000;

/// Of which products with itself and with small numbers fit what a plan's sizes may be.
constexpr std::int64_t kMostHidden = std::int64_t{1} << 24;

void CheckHiddenSize(ObjectReader& options, const Path& path, Faults& faults) {
  std::int64_t size = 1;
  options.Optional("hidden_size", ReadInteger, size);
  if (size < 1 || size > kMostHidden) {
    faults.Add(Path(path, "hidden_size"),
               "expected a count from 1 to " + std::to_string(kMostHidden));
  }
}

/// The bytes of the file's text without `hidden_size`, of which no op depends.
std::uint64_t HashGraph(std::string_view text) {
  constexpr std::string_view kKey = "\"hidden_size\"";
  constexpr std::string_view kSpace = " \t\r\n";
  for (auto key = text.find(kKey); key != text.npos; key = text.find(kKey, key + 1)) {
    const auto comma = text.find_last_not_of(kSpace, key - 1);
    const auto colon = text.find_first_not_of(kSpace, key + kKey.size());
    const auto digits = colon == text.npos ? colon : text.find_first_not_of(kSpace, colon + 1);
    const auto end = digits == text.npos ? digits : text.find_first_not_of("0123456789", digits);
    if (end != text.npos && end > digits && text[comma] == ',' && text[colon] == ':') {
      return HashBytes(std::string(text.substr(0, comma)).append(text.substr(end)));
    }
  }
  return HashBytes(text);
}

void ReadHeader(ReadState& state, ObjectReader& document) {
  Graph& graph = state.graph;
  document.Require("format");
  document.Required("name", ReadName, graph.name);
  document.Required("tokens", ReadInteger, graph.tokens);
  if (graph.tokens < 0) {
    state.faults.Add(document.At("tokens"), "expected a count of 0 or more");
  } else if (graph.tokens > kMostTokens) {
    state.faults.Add(document.At("tokens"),
                     "expected a count of at most " + std::to_string(kMostTokens));
  }
  if (const Json* recorder = document.Require("recorder")) {
    graph.notes.recorder = recorder->dump();
    const auto command = recorder->is_object() ? recorder->find("command") : recorder->end();
    if (recorder->is_object() && command != recorder->end() && command->is_string()) {
      graph.notes.command = command->get<std::string>();
    }
  }
  if (const Json* options = document.Require("options")) {
    const Path path = document.At("options");
    ObjectReader fields(*options, path, state.faults);
    std::string partitioner;
    fields.Optional("partitioner", ReadString, partitioner);
    CheckHiddenSize(fields, path, state.faults);
    graph.notes.options = options->dump();
  }
}

}  // namespace

Graph ParseGraph(std::string_view text, const std::string& file) {
  const Json json = ParseJson(text, file);
  const Locator locate = PointerLocator(file);
  RequireFormat(json, kFormat, locate);
  Faults faults(locate);
  ReadState state{{}, faults};
  const Path root;
  ObjectReader document(json, root, faults);
  const auto each = [&](std::string_view key, auto read) {
    ReadEach(document, key,
             [&](const Json& element, const Path& path) { read(state, element, path); });
  };
  ReadHeader(state, document);
  ReadStorages(state, document);
  each("values", ReadValue);
  each("params", ReadParam);
  each("buffers", ReadBuffer);
  each("inputs", ReadInput);
  ReadStrings(document, "schemas", state.graph.schemas);
  ReadStrings(document, "modules", state.graph.modules);
  ReadCompiled(document, state.graph);
  each("graphs", ReadSubgraph);
  document.RejectUnknown();
  faults.ThrowIfAny();
  CheckGraph(state.graph, faults);
  faults.ThrowIfAny();
  state.graph.hash = HashGraph(text);
  return std::move(state.graph);
}

}  // namespace dcsim
