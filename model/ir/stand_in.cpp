#include "model/ir/stand_in.h"

#include "model/ir/argument_reader.h"

namespace dcsim {
namespace {

/// How many tensors and numbers a stand-in may name: the launch's arguments, and one for each
/// output.
std::size_t CountNumbers(const TritonKernel& kernel, const Json& ops) {
  std::size_t count = kernel.signature.size();
  for (const Json& op : ops) {
    const auto outputs = op.is_object() ? op.find("outputs") : op.end();
    count += op.is_object() && outputs != op.end() && outputs->is_array() ? outputs->size() : 0;
  }
  return count;
}

StandInOp ReadOp(
    const Json& json, std::size_t schemas, std::size_t numbers, const Path& path, Faults& faults) {
  ObjectReader object(json, path, faults);
  StandInOp op;
  std::int64_t schema = 0;
  const auto count = static_cast<std::int64_t>(schemas);
  if (object.Required("schema", ReadInteger, schema) && (schema < 0 || schema >= count)) {
    faults.Add(object.At("schema"),
               "expected an index into schemas, which has " + std::to_string(count) + " entries");
    schema = 0;
  }
  op.schema = static_cast<std::uint32_t>(schema);
  const Json* arguments = object.RequireArray("args");
  const Path args = object.At("args");
  for (std::size_t i = 0; arguments != nullptr && i < arguments->size(); ++i) {
    op.arguments.push_back(ReadArgument((*arguments)[i], numbers, Path(args, i), faults));
  }
  const Json* made = object.RequireArray("outputs");
  const Path outputs = object.At("outputs");
  for (std::size_t i = 0; made != nullptr && i < made->size(); ++i) {
    const Json& output = (*made)[i];
    op.outputs.push_back(output.is_null() ? ValueId::None()
                                          : ReadValueId(output, numbers, Path(outputs, i), faults));
  }
  object.RejectUnknown();
  return op;
}

/// What a stand-in has so far while the checks walk through it.
struct Numbers {
  const TritonKernel& kernel;
  std::size_t next = 0;  // of the next tensor that is made

  bool IsTensor(ValueId id) const {
    return id.index() < kernel.signature.size() ? kernel.signature[id.index()].is_pointer()
                                                : id.index() < next;
  }
};

void CheckTensors(CheckState& state,
                  const Numbers& numbers,
                  const Argument& argument,
                  const Path& path) {
  const auto check = [&](ValueId id) {
    if (!id.is_none() && !numbers.IsTensor(id)) {
      state.faults.Add(path, std::to_string(id.index()) +
                                 " is no tensor of the launch, and nothing before makes it");
    }
  };
  if (const auto* id = std::get_if<ValueId>(&argument)) {
    check(*id);
  } else if (const auto* ids = std::get_if<std::vector<ValueId>>(&argument)) {
    for (const ValueId each : *ids) {
      check(each);
    }
  }
}

void CheckStandInOp(CheckState& state, Numbers& numbers, const StandInOp& op, const Path& path) {
  CheckArguments(state, op.schema, op.arguments, path);
  const Path arguments(path, "args");
  for (std::size_t i = 0; i < op.arguments.size(); ++i) {
    CheckTensors(state, numbers, op.arguments[i], Path(arguments, i));
  }
  const OperatorSchema& schema = *state.schemas[op.schema];
  if (op.outputs.size() != schema.returns.size()) {
    state.faults.Add(path, schema.name + " returns " + std::to_string(schema.returns.size()) +
                               " values, found " + std::to_string(op.outputs.size()));
  }
  const Path outputs(path, "outputs");
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (op.outputs[i].is_none()) {
      continue;
    }
    if (op.outputs[i].index() != numbers.next) {
      state.faults.Add(Path(outputs, i), "expected " + std::to_string(numbers.next) +
                                             ", the number of the next tensor");
    }
    ++numbers.next;
  }
}

}  // namespace

void ReadStandIn(ObjectReader& object, std::size_t schemas, TritonKernel& kernel) {
  const Json* ops = object.FindArray("computes");
  if (ops == nullptr) {
    return;
  }
  const Path path = object.At("computes");
  if (ops->empty()) {
    object.faults().Add(path, "expected at least one op");
  }
  const std::size_t numbers = CountNumbers(kernel, *ops);
  for (std::size_t i = 0; i < ops->size(); ++i) {
    kernel.stand_in.push_back(ReadOp((*ops)[i], schemas, numbers, Path(path, i), object.faults()));
  }
}

void PrintStandIn(const TritonKernel& kernel, Json& json) {
  for (const StandInOp& op : kernel.stand_in) {
    Json args = Json::array();
    for (const Argument& argument : op.arguments) {
      args.push_back(PrintArgument(argument));
    }
    Json outputs = Json::array();
    for (const ValueId output : op.outputs) {
      outputs.push_back(output.is_none() ? Json() : Json(output.index()));
    }
    json["computes"].push_back({{"schema", op.schema}, {"args", args}, {"outputs", outputs}});
  }
}

void CheckStandIns(CheckState& state, const Path& root) {
  const Path kernels(root, "kernels");
  for (std::size_t k = 0; k < state.graph.kernels.size(); ++k) {
    const TritonKernel& kernel = state.graph.kernels[k];
    const Path path(kernels, k);
    const Path ops(path, "computes");
    Numbers numbers{kernel, kernel.signature.size()};
    for (std::size_t i = 0; i < kernel.stand_in.size(); ++i) {
      CheckStandInOp(state, numbers, kernel.stand_in[i], Path(ops, i));
    }
  }
}

}  // namespace dcsim
