#include "model/ir/graph_text.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/base/error.h"
#include "model/base/text.h"
#include "model/ir/document.h"
#include "model/ir/graph_checks.h"
#include "model/ir/graph_reader.h"

namespace dcsim {
namespace {

/// Takes tokens off the front of one line.
class LineCursor {
 public:
  LineCursor(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {
    Skip();
  }

  bool at_end() const { return rest_.empty(); }

  /// The next name or number: letters, digits and "._:-/" (":" only inside "::").
  std::string Name() {
    std::size_t length = 0;
    while (length < rest_.size() && IsNameAt(length)) {
      length += rest_[length] == ':' ? 2U : 1U;
    }
    if (length == 0) {
      Fail("expected a name");
    }
    std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    Skip();
    return name;
  }

  bool Accept(std::string_view token) {
    if (!rest_.starts_with(token)) {
      return false;
    }
    const bool word = std::isalpha(static_cast<unsigned char>(token.back())) != 0;
    if (word && token.size() < rest_.size() && IsNameAt(token.size())) {
      return false;
    }
    rest_.remove_prefix(token.size());
    Skip();
    return true;
  }

  void Expect(std::string_view token) {
    if (!Accept(token)) {
      Fail("expected '" + std::string(token) + "'");
    }
  }

  std::int64_t Integer() {
    const std::string name = Name();
    const auto value = FindInteger(name);
    if (!value || *value < 0) {
      Fail("expected a count, found '" + name + "'");
    }
    return *value;
  }

  [[noreturn]] void Fail(const std::string& what) const {
    throw Error(where_ + ": " + what +
                (rest_.empty() ? " at the end" : " at '" + std::string(rest_) + "'"));
  }

 private:
  bool IsNameAt(std::size_t i) const {
    const auto c = static_cast<unsigned char>(rest_[i]);
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '/' ||
           (c == ':' && rest_.substr(i).starts_with("::"));
  }
  void Skip() {
    while (rest_.starts_with(' ')) {
      rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  std::string where_;
};

struct BuildState {
  Graph graph;
  std::map<std::string, ValueId, std::less<>> names;
  std::map<std::string, std::uint32_t> schemas;
  std::map<std::string, std::uint32_t> modules;
};

std::uint32_t Intern(std::map<std::string, std::uint32_t>& index,
                     std::vector<std::string>& table,
                     const std::string& text) {
  const auto [entry, added] = index.emplace(text, static_cast<std::uint32_t>(table.size()));
  if (added) {
    table.push_back(text);
  }
  return entry->second;
}

ValueId Lookup(BuildState& state, LineCursor& line) {
  const std::string name = line.Name();
  const auto found = state.names.find(name);
  if (found == state.names.end()) {
    line.Fail("unknown value '" + name + "'");
  }
  return found->second;
}

void ReadType(LineCursor& line, Value& value) {
  const std::string dtype = line.Name();
  const auto found = FindDType(dtype);
  if (!found) {
    line.Fail("unknown dtype '" + dtype + "'" + DidYouMean(dtype, DTypeNames()));
  }
  value.dtype = *found;
  line.Expect("[");
  while (!line.Accept("]")) {
    value.shape.push_back(line.Integer());
    line.Accept(",");
  }
  if (!IsCountable(value.shape)) {
    line.Fail("expected at most 2^48 elements");
  }
  value.strides.resize(value.shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = value.shape.size(); i-- > 0;) {
    value.strides[i] = stride;
    stride *= value.shape[i];
  }
}

/// "bfloat16[32,64]" or "bfloat16[64,32] views a" for the new value `name`.
ValueId ReadNewValue(BuildState& state, LineCursor& line, const std::string& name) {
  Value value;
  value.name = name;
  ReadType(line, value);
  if (line.Accept("views")) {
    value.storage = state.graph.storage_of(Lookup(state, line));
  } else {
    value.storage = StorageId(state.graph.storages.size());
    state.graph.storages.push_back({value.bytes()});
  }
  const ValueId id(state.graph.values.size());
  if (!state.names.emplace(name, id).second) {
    line.Fail("a second value '" + name + "'");
  }
  state.graph.values.push_back(std::move(value));
  return id;
}

void ReadResident(BuildState& state, LineCursor& line, std::string_view kind) {
  const std::string name = line.Name();
  const ValueId value = ReadNewValue(state, line, name);
  if (kind == "param") {
    const bool frozen = line.Accept("frozen");
    state.graph.params.push_back({name, value, !frozen, {}});
  } else if (kind == "buffer") {
    state.graph.buffers.push_back({name, value, {}});
  } else {
    const bool floating = IsFloating(state.graph.value(value).dtype);
    state.graph.inputs.push_back(
        {name, value, floating ? FillKind::kUniform : FillKind::kTokens, floating ? 0 : 2});
  }
}

Subgraph& CurrentGraph(BuildState& state, LineCursor& line) {
  if (state.graph.graphs.empty()) {
    line.Fail("expected 'forward' first");
  }
  return state.graph.graphs.back();
}

void StartSubgraph(BuildState& state, LineCursor& line, Direction direction) {
  Subgraph subgraph;
  subgraph.direction = direction;
  subgraph.first_op = state.graph.ops.size();
  if (direction == Direction::kBackward) {
    const auto forward = line.Accept("of") ? static_cast<std::size_t>(line.Integer()) : 0;
    if (forward >= state.graph.graphs.size()) {
      line.Fail("expected an earlier graph, found " + std::to_string(forward));
    }
    subgraph.forward = GraphId(forward);
  }
  state.graph.graphs.push_back(std::move(subgraph));
}

void AddInput(Subgraph& subgraph, GraphInputKind kind, ValueId value) {
  for (const GraphInput& input : subgraph.inputs) {
    if (input.value == value) {
      return;
    }
  }
  subgraph.inputs.push_back({kind, value, ValueId::None()});
}

/// Uses of residents and saved values become inputs of the graph that uses them.
void AddInputOnUse(BuildState& state, ValueId value) {
  Subgraph& subgraph = state.graph.graphs.back();
  const auto resident = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(),
                       [value](const auto& entry) { return entry.value == value; });
  };
  if (resident(state.graph.params)) {
    AddInput(subgraph, GraphInputKind::kParam, value);
  } else if (resident(state.graph.buffers)) {
    AddInput(subgraph, GraphInputKind::kBuffer, value);
  } else if (resident(state.graph.inputs)) {
    AddInput(subgraph, GraphInputKind::kInput, value);
  } else if (subgraph.direction == Direction::kBackward) {
    const auto& forward = state.graph.graphs[subgraph.forward.index()];
    for (const GraphOutput& output : forward.outputs) {
      if (output.kind == GraphOutputKind::kSaved && output.value == value) {
        AddInput(subgraph, GraphInputKind::kSaved, value);
      }
    }
  }
}

std::vector<ValueId> ReadOutputs(BuildState& state, LineCursor& line, const std::string& first) {
  std::vector<ValueId> outputs;
  std::string name = first;
  while (true) {
    if (name == "_") {
      outputs.push_back(ValueId::None());
    } else {
      line.Expect(":");
      outputs.push_back(ReadNewValue(state, line, name));
    }
    if (line.Accept("=")) {
      return outputs;
    }
    line.Expect(",");
    name = line.Name();
  }
}

/// A schema with the op's own count of tensor arguments and returns; outputs that lie in an input's
/// storage are marked as aliases.
std::string FittingSchema(const Graph& graph, const std::string& target, const Op& op) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    arguments.push_back("Tensor(a) a" + std::to_string(i));
  }
  const auto aliases = [&](ValueId output) {
    return !output.is_none() && std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId input) {
      return graph.storage_of(input) == graph.storage_of(output);
    });
  };
  std::vector<std::string> returns;
  for (const ValueId output : op.outputs) {
    returns.push_back(aliases(output) ? "Tensor(a)" : "Tensor");
  }
  const std::string joined = Join(returns, ", ");
  return target + "(" + Join(arguments, ", ") + ") -> " +
         (returns.size() == 1 ? joined : "(" + joined + ")");
}

void ReadOp(BuildState& state, LineCursor& line, const std::string& first) {
  Op op;
  CurrentGraph(state, line);
  op.graph = GraphId(state.graph.graphs.size() - 1);
  op.outputs = ReadOutputs(state, line, first);
  const std::string target = line.Name();
  line.Expect("(");
  while (!line.Accept(")")) {
    const ValueId input = Lookup(state, line);
    AddInputOnUse(state, input);
    op.inputs.push_back(input);
    op.arguments.emplace_back(input);
    line.Accept(",");
  }
  op.recompute = line.Accept("recompute");
  op.module = Intern(state.modules, state.graph.modules, line.Accept("@") ? line.Name() : "");
  op.schema = Intern(state.schemas, state.graph.schemas, FittingSchema(state.graph, target, op));
  state.graph.ops.push_back(std::move(op));
  ++state.graph.graphs.back().op_count;
}

void ReadGradient(BuildState& state, LineCursor& line) {
  const std::string name = line.Name();
  const auto found = std::find_if(state.graph.params.begin(), state.graph.params.end(),
                                  [&name](const Param& param) { return param.name == name; });
  if (found == state.graph.params.end()) {
    line.Fail("unknown param '" + name + "'");
  }
  line.Expect("=");
  GraphOutput output;
  output.kind = GraphOutputKind::kGradient;
  output.value = Lookup(state, line);
  output.param = ParamId(static_cast<std::size_t>(found - state.graph.params.begin()));
  CurrentGraph(state, line).outputs.push_back(output);
}

void ReadOutputLine(BuildState& state, LineCursor& line, GraphOutputKind kind) {
  GraphOutput output;
  output.kind = kind;
  output.value = Lookup(state, line);
  if (kind == GraphOutputKind::kOutput) {
    output.name = line.Accept("as") ? line.Name() : state.graph.value(output.value).name;
    output.held = line.Accept("held");
  } else if (kind == GraphOutputKind::kTangent) {
    line.Expect("of");
    output.of = Lookup(state, line);
  }
  CurrentGraph(state, line).outputs.push_back(output);
}

void ReadTangentInput(BuildState& state, LineCursor& line) {
  const std::string name = line.Name();
  line.Expect(":");
  const ValueId value = ReadNewValue(state, line, name);
  line.Expect("of");
  const ValueId of = Lookup(state, line);
  CurrentGraph(state, line).inputs.push_back({GraphInputKind::kTangent, value, of});
}

void ReadLine(BuildState& state, LineCursor& line) {
  const std::string word = line.Name();
  if (word == "graph") {
    state.graph.name = line.Name();
    state.graph.tokens = line.Integer();
    line.Expect("tokens");
  } else if (word == "param" || word == "buffer" || word == "input") {
    ReadResident(state, line, word);
  } else if (word == "forward") {
    StartSubgraph(state, line, Direction::kForward);
  } else if (word == "backward") {
    StartSubgraph(state, line, Direction::kBackward);
  } else if (word == "loss") {
    ReadOutputLine(state, line, GraphOutputKind::kLoss);
  } else if (word == "output") {
    ReadOutputLine(state, line, GraphOutputKind::kOutput);
  } else if (word == "save") {
    ReadOutputLine(state, line, GraphOutputKind::kSaved);
  } else if (word == "pass") {
    ReadOutputLine(state, line, GraphOutputKind::kTangent);
  } else if (word == "tangent") {
    ReadTangentInput(state, line);
  } else if (word == "gradient") {
    ReadGradient(state, line);
  } else if (word == "receive") {
    CurrentGraph(state, line)
        .inputs.push_back({GraphInputKind::kActivation, Lookup(state, line), ValueId::None()});
  } else {
    ReadOp(state, line, word);
  }
  if (!line.at_end()) {
    line.Fail("expected the end of the line");
  }
}

}  // namespace

Graph ParseGraphText(std::string_view text, const std::string& file) {
  BuildState state;
  Intern(state.modules, state.graph.modules, "");
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    content = content.substr(0, content.find('#'));
    while (content.ends_with(' ')) {
      content.remove_suffix(1);
    }
    LineCursor line(content, file + ":" + std::to_string(number));
    if (!line.at_end()) {
      ReadLine(state, line);
    }
  }
  Faults faults(PointerLocator(file));
  CheckGraph(state.graph, faults);
  faults.ThrowIfAny();
  state.graph.hash = HashBytes(PrintGraph(state.graph));
  return std::move(state.graph);
}

}  // namespace dcsim
