#include "exec/interpreter/prepared_call.h"

#include <algorithm>
#include <sstream>
#include <utility>

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

/// Whether an overload takes what `own` takes, in the same order, and then the tensor to write.
bool WritesBehind(const c10::OperatorHandle& writing, const c10::OperatorHandle& own) {
  const auto& more = writing.schema().arguments();
  const auto& arguments = own.schema().arguments();
  const auto same = [](const c10::Argument& one, const c10::Argument& other) {
    return one.name() == other.name() && *one.type() == *other.type();
  };
  return more.size() == arguments.size() + 1 && more.back().is_out() &&
         std::equal(arguments.begin(), arguments.end(), more.begin(), same);
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
    : PreparedCall(FindOperator(schema), arguments, device) {}

std::optional<PreparedCall> PreparedCall::IntoMemory(const std::string& schema,
                                                     const std::vector<Argument>& arguments,
                                                     c10::Device device) {
  const c10::OperatorHandle own = FindOperator(schema);
  const auto writing = c10::Dispatcher::singleton().findSchema({own.schema().name(), "out"});
  if (!writing || own.schema().returns().size() != 1 || !WritesBehind(*writing, own)) {
    return std::nullopt;
  }
  return PreparedCall(*writing, arguments, device);
}

PreparedCall::PreparedCall(c10::OperatorHandle handle,
                           const std::vector<Argument>& arguments,
                           c10::Device device)
    : handle_(std::move(handle)) {
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
