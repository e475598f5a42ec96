#include "exec/interpreter/stand_in_program.h"

#include <algorithm>

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

/// By op: the tensors of which it is the last to say anything.
std::vector<std::vector<ValueId>> FindDying(const std::vector<StandInOp>& ops, std::size_t count) {
  std::vector<std::vector<ValueId>> dying(ops.size());
  std::vector<char> seen(count);
  for (std::size_t i = ops.size(); i-- > 0;) {
    const auto see = [&](ValueId id) {
      if (!id.is_none() && seen[id.index()]++ == 0) {
        dying[i].push_back(id);
      }
    };
    for (const Argument& argument : ops[i].arguments) {
      if (const auto* id = std::get_if<ValueId>(&argument)) {
        see(*id);
      } else if (const auto* ids = std::get_if<std::vector<ValueId>>(&argument)) {
        std::ranges::for_each(*ids, see);
      }
    }
    std::ranges::for_each(ops[i].outputs, see);
  }
  return dying;
}

std::size_t CountTensors(const TritonKernel& kernel) {
  std::size_t count = kernel.signature.size();
  for (const StandInOp& op : kernel.stand_in) {
    count += op.outputs.size();
  }
  return count;
}

}  // namespace

StandInProgram::StandInProgram(const Graph& graph, const TritonKernel& kernel, c10::Device device)
    : own_(CountTensors(kernel)) {
  if (kernel.stand_in.empty()) {
    throw Error("kernel " + kernel.name + " has no stand-in");
  }
  auto dying = FindDying(kernel.stand_in, own_.size());
  for (std::size_t i = 0; i < kernel.stand_in.size(); ++i) {
    const StandInOp& op = kernel.stand_in[i];
    steps_.push_back({PreparedCall(graph.schemas[op.schema], op.arguments, device), op.outputs,
                      std::move(dying[i])});
  }
}

void StandInProgram::Run(const std::vector<Argument>& arguments, const Frame& frame) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const auto* id = std::get_if<ValueId>(&arguments[i])) {
      own_[i] = frame[id->index()];
      DCSIM_CHECK(own_[i].defined()) << "value " << id->index() << " is not alive";
    }
  }
  for (const Step& step : steps_) {
    step.call.Fill(own_, stack_);
    step.call.Call(stack_);
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      if (!step.outputs[i].is_none()) {
        own_[step.outputs[i].index()] = std::move(stack_[i]).toTensor();
      }
    }
    for (const ValueId id : step.dying) {
      own_[id.index()].reset();
    }
  }
  stack_.clear();
  std::ranges::for_each(own_, [](at::Tensor& tensor) { tensor.reset(); });
}

}  // namespace dcsim::exec
