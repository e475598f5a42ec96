#include "exec/interpreter/cubin_program.h"

#include <ATen/ops/empty_strided.h>

#include "exec/interpreter/launch_grid.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr std::int64_t kWarp = 32;         // threads
constexpr std::uintptr_t kAlignment = 16;  // bytes

}  // namespace

CubinProgram::Program::Program(const TritonKernel& kernel,
                               const KernelBinaries& binaries,
                               const KernelBinary& own)
    : binary(own),
      function({kernel.name, binaries.architecture, own.cubin, own.entry, own.shared,
                kWarp * own.config.at("num_warps")}),
      packed(kernel.signature, own.passed),
      must_align(kernel.signature.size()) {
  for (const std::size_t position : own.aligned) {
    must_align[position] = 1;
  }
}

CubinProgram::CubinProgram(const TritonKernel& kernel, const KernelBinaries& binaries)
    : kernel_(kernel) {
  for (const KernelBinary& binary : binaries.by_hash.at(kernel.hash)) {
    programs_.emplace_back(kernel, binaries, binary);
  }
}

at::Tensor CubinProgram::Align(std::size_t position, const at::Tensor& tensor) const {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
  if (programs_[used_].must_align[position] == 0 || address % kAlignment == 0) {
    return tensor;
  }
  const std::string& name = kernel_.signature[position].name;
  if (!name.starts_with("in_ptr")) {
    throw SystemError("kernel " + kernel_.name + " writes " + name +
                      ", which lies at no multiple of 16 bytes");
  }
  at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options());
  return copy.copy_(tensor);
}

void CubinProgram::Run(const std::vector<Argument>& arguments, const Frame& frame) {
  Program& program = programs_[used_];
  LaunchArguments& packed = program.packed;
  std::vector<at::Tensor> held;  // until the launch is on its stream
  std::map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const auto* number = std::get_if<std::int64_t>(&arguments[i])) {
      numbers[kernel_.signature[i].name] = *number;
    }
  }
  for (std::size_t i = 0; i < program.binary.passed.size(); ++i) {
    const std::size_t position = program.binary.passed[i];
    const Argument& argument = arguments[position];
    if (const auto* id = std::get_if<ValueId>(&argument)) {
      DCSIM_CHECK(frame[id->index()].defined()) << "value " << id->index() << " is not alive";
      held.push_back(Align(position, frame[id->index()]));
      packed.Set(i, static_cast<const void*>(held.back().data_ptr()));
    } else if (const auto* whole = std::get_if<std::int64_t>(&argument)) {
      packed.Set(i, *whole);
    } else if (const auto* real = std::get_if<double>(&argument)) {
      packed.Set(i, *real);
    } else {
      DCSIM_CHECK(false) << kernel_.name << ", argument " << position;
    }
  }
  program.function.Launch(GridOf(kernel_.grid, program.binary.config, numbers), packed.data());
}

}  // namespace dcsim::exec
