#include "exec/interpreter/prepared_call.h"

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

PreparedCall::PreparedCall(const std::string& schema,
                           const std::vector<Argument>& arguments,
                           c10::Device device)
    : handle_(FindOperator(schema)) {
  const auto& parameters = handle_.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto argument = static_cast<std::uint32_t>(i);
    prototype_.push_back(ToIValue(arguments[i], parameters[i].type(), device));
    if (const auto* value = std::get_if<ValueId>(&arguments[i])) {
      slots_.push_back({argument, TensorSlot::kWhole, *value});
    } else if (const auto* values = std::get_if<std::vector<ValueId>>(&arguments[i])) {
      lists_.push_back(argument);
      for (std::size_t k = 0; k < values->size(); ++k) {
        if (!(*values)[k].is_none()) {
          slots_.push_back({argument, static_cast<std::int32_t>(k), (*values)[k]});
        }
      }
    }
  }
}

void PreparedCall::Fill(const Frame& frame, torch::jit::Stack& stack) const {
  stack.assign(prototype_.begin(), prototype_.end());
  for (const std::uint32_t list : lists_) {
    stack[list] = CopyList(stack[list]);
  }
  for (const TensorSlot& slot : slots_) {
    const at::Tensor& tensor = frame[slot.value.index()];
    DCSIM_CHECK(tensor.defined()) << "value " << slot.value.index() << " is not alive";
    c10::IValue& argument = stack[slot.argument];
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

}  // namespace dcsim::exec
