#include "tests/exec/support/real_graph.h"

#include <sstream>

#include <ATen/core/dispatch/Dispatcher.h>

#include "model/base/error.h"
#include "model/ir/graph_text.h"
#include "model/ir/operator_schema.h"

namespace dcsim::exec {
namespace {

Argument DefaultOf(const c10::Argument& argument) {
  DCSIM_CHECK(argument.default_value().has_value()) << argument.name() << " has no default";
  const c10::IValue& value = *argument.default_value();
  if (value.isInt()) {
    return value.toInt();
  }
  if (value.isBool()) {
    return value.toBool();
  }
  DCSIM_CHECK(value.isNone()) << argument.name();
  return std::monostate();
}

}  // namespace

Graph ParseRealGraph(std::string_view text) {
  Graph graph = ParseGraphText(text);
  for (Op& op : graph.ops) {
    const auto written = FindSchema(graph.schemas[op.schema]);
    const auto& schema = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(written->name.c_str(), written->overload.c_str())
                             .schema();
    for (std::size_t i = op.arguments.size(); i < schema.arguments().size(); ++i) {
      op.arguments.push_back(DefaultOf(schema.arguments()[i]));
    }
  }
  for (std::string& schema : graph.schemas) {
    const auto written = FindSchema(schema);
    std::ostringstream real;
    real << c10::Dispatcher::singleton()
                .findSchemaOrThrow(written->name.c_str(), written->overload.c_str())
                .schema();
    schema = real.str();
  }
  return graph;
}

Graph OneOp(const std::string& schema,
            const std::vector<Argument>& arguments,
            std::size_t inputs,
            const std::vector<ValueId>& outputs) {
  Graph graph;
  graph.schemas = {schema};
  graph.values.resize(inputs + outputs.size());
  Op op;
  op.arguments = arguments;
  op.outputs = outputs;
  op.returns_list = schema.ends_with("Tensor[]") || schema.ends_with("Tensor(a)[]");
  graph.ops = {op};
  return graph;
}

}  // namespace dcsim::exec
