#include "exec/interpreter/op_program.h"

#include <sstream>

#include <torch/csrc/api/include/torch/version.h>

#include "exec/interpreter/argument_values.h"
#include "model/base/error.h"
#include "model/ir/operator_schema.h"

namespace dcsim::exec {
namespace {

std::string ToText(const c10::FunctionSchema& schema) {
  std::ostringstream text;
  text << schema;
  return text.str();
}

c10::OperatorHandle FindOperator(const std::string& recorded) {
  const auto schema = FindSchema(recorded);
  DCSIM_CHECK(schema.has_value()) << recorded;
  const auto handle = c10::Dispatcher::singleton().findSchema({schema->name, schema->overload});
  if (!handle) {
    throw Error(recorded + ": this libtorch (" TORCH_VERSION
                           ") has no such operator; was the graph recorded with another version?");
  }
  const std::string own = ToText(handle->schema());
  if (own != recorded) {
    throw Error(schema->name + ": the graph was recorded with another torch version: recorded " +
                recorded + ", this libtorch (" TORCH_VERSION ") has " + own);
  }
  return *handle;
}

/// Lists are shared when they are copied: a call gets one of its own, or the prototype would keep
/// its tensors alive.
c10::IValue CopyList(const c10::IValue& list) {
  return list.isOptionalTensorList() ? c10::IValue(list.toOptionalTensorList().copy())
                                     : c10::IValue(list.toTensorList().copy());
}

}  // namespace

OpProgram::OpProgram(const Graph& graph, c10::Device device) : graph_(graph), device_(device) {
  ops_.reserve(graph.ops.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    ops_.push_back(Prepare(graph, OpId(i)));
  }
}

OpProgram::PreparedOp OpProgram::Prepare(const Graph& graph, OpId id) const {
  const Op& op = graph.op(id);
  PreparedOp prepared{FindOperator(graph.schemas[op.schema]), {}, {}, {}};
  const auto& parameters = prepared.handle.schema().arguments();
  for (std::size_t i = 0; i < op.arguments.size(); ++i) {
    const auto argument = static_cast<std::uint32_t>(i);
    prepared.prototype.push_back(ToIValue(op.arguments[i], parameters[i].type(), device_));
    if (const auto* value = std::get_if<ValueId>(&op.arguments[i])) {
      prepared.slots.push_back({argument, TensorSlot::kWhole, *value});
    } else if (const auto* values = std::get_if<std::vector<ValueId>>(&op.arguments[i])) {
      prepared.lists.push_back(argument);
      for (std::size_t k = 0; k < values->size(); ++k) {
        if (!(*values)[k].is_none()) {
          prepared.slots.push_back({argument, static_cast<std::int32_t>(k), (*values)[k]});
        }
      }
    }
  }
  return prepared;
}

/// Copies the prototype onto the stack and puts the frame's tensors into their places.
void OpProgram::Fill(const PreparedOp& op, const Frame& frame) {
  stack_.assign(op.prototype.begin(), op.prototype.end());
  for (const std::uint32_t list : op.lists) {
    stack_[list] = CopyList(stack_[list]);
  }
  for (const TensorSlot& slot : op.slots) {
    const at::Tensor& tensor = frame[slot.value.index()];
    DCSIM_CHECK(tensor.defined()) << "value " << slot.value.index() << " is not alive";
    c10::IValue& argument = stack_[slot.argument];
    if (slot.element == TensorSlot::kWhole) {
      argument = tensor;
      continue;
    }
    const auto element = static_cast<std::size_t>(slot.element);
    if (argument.isOptionalTensorList()) {
      argument.toOptionalTensorList().set(element, tensor);
    } else {
      argument.toTensorList().set(element, tensor);
    }
  }
}

/// Moves what the call returned into the frame; what nothing uses dies here.
void OpProgram::Take(const Op& op, Frame& frame) {
  if (op.returns_list) {
    const auto list = stack_.front().toTensorVector();
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i].is_none()) {
        frame[op.outputs[i].index()] = list[i];
      }
    }
  } else {
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i].is_none()) {
        frame[op.outputs[i].index()] = std::move(stack_[i]).toTensor();
      }
    }
  }
  stack_.clear();
}

void OpProgram::Run(OpId id, Frame& frame) {
  const PreparedOp& op = ops_[id.index()];
  Fill(op, frame);
  try {
    op.handle.callBoxed(&stack_);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    throw SystemError("op " + std::to_string(id.index()) + ", " + std::string(graph_.target(id)) +
                      ": " + what.substr(0, what.find('\n')));
  }
  Take(graph_.op(id), frame);
}

}  // namespace dcsim::exec
