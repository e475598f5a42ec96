#include "model/ir/op_checks.h"

#include <algorithm>

#include "model/ir/argument_types.h"

namespace dcsim {
namespace {

/// Whether output `i` may share an argument's storage. _unsafe_view and the unsafe splits return
/// views although their schemas do not say so.
bool MayAlias(const OperatorSchema& schema, const Op& op, std::size_t i) {
  const std::size_t field = op.returns_list ? 0 : i;
  return schema.name == "aten::_unsafe_view" || schema.name.starts_with("aten::unsafe_") ||
         (field < schema.returns.size() && schema.returns[field].aliases);
}

std::string TargetOf(const CheckState& state, const Op& op) {
  return op.launch ? state.graph.kernel(*op.launch).name : state.schemas[op.schema]->name;
}

bool Reuses(const Op& op, ValueId value) {
  return std::find(op.reuses.begin(), op.reuses.end(), value) != op.reuses.end();
}

bool AliasesAnInput(const CheckState& state, const Op& op, StorageId storage) {
  for (const ValueId input : op.inputs) {
    if (state.graph.storage_of(input) == storage) {
      return true;
    }
  }
  return false;
}

/// An output's storage is new, shared with an output before it (`own`), or an input's; in a
/// compiled form also one that is reused, or that other ops fill parts of.
void CheckOutputStorage(CheckState& state,
                        const Op& op,
                        std::size_t i,
                        const std::vector<StorageId>& own,
                        const Path& path) {
  const StorageId storage = state.graph.storage_of(op.outputs[i]);
  if (state.storage_exists[storage.index()] == 0 ||
      std::find(own.begin(), own.end(), storage) != own.end()) {
    return;
  }
  if (state.graph.compiled && state.is_resident[storage.index()] == 0 &&
      (op.launch || Reuses(op, op.outputs[i]) || !AliasesAnInput(state, op, storage))) {
    return;
  }
  if (!AliasesAnInput(state, op, storage)) {
    state.faults.Add(path, state.Name(op.outputs[i]) +
                               " lies in a storage that exists already and is no input's");
  } else if (op.launch || !MayAlias(*state.schemas[op.schema], op, i)) {
    state.faults.Add(path, state.Name(op.outputs[i]) + " lies in an input's storage, which " +
                               TargetOf(state, op) + " does not allow");
  }
}

/// Nobody may read the older values of a storage that an op reuses.
void CheckReuses(CheckState& state, const Op& op, const Path& path) {
  for (const ValueId value : op.reuses) {
    const bool made = std::find(op.outputs.begin(), op.outputs.end(), value) != op.outputs.end();
    const StorageId storage = state.graph.storage_of(value);
    if (!state.graph.compiled || !made) {
      state.faults.Add(path, state.Name(value) +
                                 " reuses memory: expected an output of an op of "
                                 "a compiled form");
    } else if (state.storage_exists[storage.index()] == 0) {
      state.faults.Add(path, state.Name(value) + " reuses memory that nothing has had");
    }
    for (std::size_t i = 0; i < state.value_exists.size(); ++i) {
      const ValueId other(i);
      if (state.Exists(other) && state.graph.storage_of(other) == storage) {
        state.is_over[i] = 1;
      }
    }
  }
}

void CheckRead(CheckState& state, ValueId input, const Path& path) {
  if (!state.Exists(input)) {
    state.faults.Add(path, state.Name(input) + " is used before it is produced");
  } else if (state.in_graph[input.index()] == 0) {
    state.faults.Add(path, state.Name(input) + " is used and no input of this graph");
  } else if (state.is_over[input.index()] != 0) {
    state.faults.Add(path, state.Name(input) + " is used after its memory has been reused");
  }
}

/// A launch's arguments are what its kernel's signature says; its outputs are among them.
void CheckSignature(CheckState& state, const Op& op, const Path& path) {
  const TritonKernel& kernel = state.graph.kernel(*op.launch);
  if (op.arguments.size() != kernel.signature.size()) {
    state.faults.Add(path, kernel.name + " takes " + std::to_string(kernel.signature.size()) +
                               " arguments, found " + std::to_string(op.arguments.size()));
    return;
  }
  for (std::size_t i = 0; i < op.arguments.size(); ++i) {
    const bool tensor = std::holds_alternative<ValueId>(op.arguments[i]);
    if (kernel.signature[i].is_pointer() != tensor) {
      state.faults.Add(Path(Path(path, "args"), i), "does not fit '" + kernel.signature[i].type +
                                                        " " + kernel.signature[i].name + "' of " +
                                                        kernel.name);
    }
  }
  for (const ValueId output : op.outputs) {
    if (std::find(op.arguments.begin(), op.arguments.end(), Argument(output)) ==
        op.arguments.end()) {
      state.faults.Add(path,
                       state.Name(output) + " is an output and no argument of " + kernel.name);
    }
  }
}

void CheckCall(CheckState& state, const Op& op, const Path& path) {
  CheckArguments(state, op.schema, op.arguments, path);
  const OperatorSchema& schema = *state.schemas[op.schema];
  const std::size_t returns = op.returns_list ? 1 : op.outputs.size();
  if (returns != schema.returns.size()) {
    state.faults.Add(path, schema.name + " returns " + std::to_string(schema.returns.size()) +
                               " values, found " + std::to_string(returns));
  }
}

}  // namespace

void CheckArguments(CheckState& state,
                    std::uint32_t schema_index,
                    const std::vector<Argument>& arguments,
                    const Path& path) {
  const OperatorSchema& schema = *state.schemas[schema_index];
  if (arguments.size() != schema.arguments.size()) {
    state.faults.Add(path, schema.name + " takes " + std::to_string(schema.arguments.size()) +
                               " arguments, found " + std::to_string(arguments.size()));
    return;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!FitsType(arguments[i], schema.arguments[i].type)) {
      state.faults.Add(Path(Path(path, "args"), i), "does not fit '" + schema.arguments[i].type +
                                                        " " + schema.arguments[i].name + "' of " +
                                                        schema.name);
    }
  }
}

void CheckOp(CheckState& state, const Op& op, const Path& path) {
  for (const ValueId input : op.inputs) {
    CheckRead(state, input, path);
  }
  if (op.launch) {
    CheckSignature(state, op, path);
  } else {
    CheckCall(state, op, path);
  }
  CheckReuses(state, op, path);
  std::vector<StorageId> own;
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const ValueId output = op.outputs[i];
    if (output.is_none()) {
      continue;
    }
    if (state.Exists(output)) {
      state.faults.Add(path, state.Name(output) + " is produced twice");
      continue;
    }
    CheckOutputStorage(state, op, i, own, path);
    own.push_back(state.graph.storage_of(output));
    state.Produce(output);
    state.in_graph[output.index()] = 1;
  }
  if (op.launch) {
    for (const ValueBytes& written : op.launch->writes) {
      CheckRead(state, written.value, path);
    }
  }
}

}  // namespace dcsim
