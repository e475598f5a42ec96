#include "exec/interpreter/op_program.h"

#include "exec/interpreter/configuration_choice.h"
#include "model/base/error.h"

namespace dcsim::exec {

namespace {

std::unique_ptr<PreparedCall> FindWritingCall(const Graph& graph,
                                              const Op& op,
                                              c10::Device device) {
  if (op.outputs.size() != 1 || op.outputs.front().is_none() || op.returns_list) {
    return nullptr;
  }
  auto call = PreparedCall::IntoMemory(graph.schemas[op.schema], op.arguments, device);
  return call ? std::make_unique<PreparedCall>(*std::move(call)) : nullptr;
}

}  // namespace

OpProgram::OpProgram(const Graph& graph, c10::Device device, const KernelBinaries* binaries)
    : graph_(graph),
      device_(device) {
  calls_.reserve(graph.ops.size());
  for (const Op& op : graph.ops) {
    calls_.push_back(
        op.launch ? nullptr
                  : std::make_unique<PreparedCall>(graph.schemas[op.schema], op.arguments, device));
  }
  for (const TritonKernel& kernel : graph.kernels) {
    kernels_.push_back(MakeKernelProgram(graph, kernel, device, binaries));
  }
  if (graph.compiled) {
    UseFastestConfigurations(graph, device, kernels_);
    memory_ = std::make_unique<CompiledMemory>(graph, device);
    for (const Op& op : graph.ops) {
      writing_calls_.push_back(op.launch ? nullptr : FindWritingCall(graph, op, device));
    }
  }
  for (const std::string& schema : graph.schemas) {
    shows_storage_.push_back(schema.starts_with("aten::as_strided(") ? 1 : 0);
  }
}

/// The offset of as_strided counts from the begin of a storage. A tensor here may lie elsewhere in
/// a larger one, as a parameter among others does.
void OpProgram::MoveView(const Op& op, const Frame& frame) {
  const auto* base = std::get_if<ValueId>(&op.arguments.front());
  c10::IValue& offset = stack_.back();
  if (base != nullptr && offset.isInt()) {
    offset = offset.toInt() + frame[base->index()].storage_offset() - graph_.value(*base).offset;
  }
}

/// Puts a result into the frame; of a compiled graph it lies where the recording has it.
void OpProgram::Keep(ValueId output, at::Tensor&& result, Frame& frame) const {
  frame[output.index()] =
      memory_ ? memory_->Place(output, std::move(result), frame) : std::move(result);
}

/// Moves what the call returned into the frame; what nothing uses dies here.
void OpProgram::Take(const Op& op, Frame& frame) {
  if (op.returns_list) {
    auto list = stack_.front().toTensorVector();
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i].is_none()) {
        Keep(op.outputs[i], std::move(list[i]), frame);
      }
    }
  } else {
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (!op.outputs[i].is_none()) {
        Keep(op.outputs[i], std::move(stack_[i]).toTensor(), frame);
      }
    }
  }
  stack_.clear();
}

void OpProgram::Launch(const Op& op, Frame& frame) {
  for (const ValueId output : op.outputs) {
    frame[output.index()] = memory_->Find(output, frame);
  }
  kernels_[op.launch->kernel]->Run(op.arguments, frame);
}

/// Whether an op's result goes into memory that is there, as Inductor's calls of extern kernels do.
bool OpProgram::HasMemory(OpId id, const Frame& frame) const {
  return memory_ && writing_calls_[id.index()] != nullptr &&
         memory_->IsThere(graph_.op(id).outputs.front(), frame);
}

void OpProgram::CallInto(OpId id, Frame& frame) {
  const ValueId output = graph_.op(id).outputs.front();
  const PreparedCall& call = *writing_calls_[id.index()];
  call.Fill(frame, stack_);
  at::Tensor tensor = memory_->Find(output, frame);
  stack_.emplace_back(tensor);
  call.Call(stack_);
  frame[output.index()] = std::move(tensor);
  stack_.clear();
}

void OpProgram::Call(OpId id, Frame& frame) {
  const Op& op = graph_.op(id);
  const PreparedCall& call = *calls_[id.index()];
  call.Fill(frame, stack_);
  if (shows_storage_[op.schema] != 0) {
    MoveView(op, frame);
  }
  call.Call(stack_);
  Take(op, frame);
}

void OpProgram::Run(OpId id, Frame& frame) {
  const Op& op = graph_.op(id);
  try {
    if (op.launch) {
      Launch(op, frame);
    } else if (HasMemory(id, frame)) {
      CallInto(id, frame);
    } else {
      Call(id, frame);
    }
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    throw SystemError("op " + std::to_string(id.index()) + ", " + std::string(graph_.target(id)) +
                      ": " + what.substr(0, what.find('\n')));
  }
}

}  // namespace dcsim::exec
