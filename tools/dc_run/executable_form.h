#pragma once

#include <optional>
#include <string>

#include "exec/interpreter/kernel_binaries.h"
#include "tools/common/compiled_form.h"
#include "tools/common/load.h"

namespace CLI {
class App;
}

namespace dcsim {

/// A compiled form, and on GPUs its kernels.
struct ExecutableForm {
  ProfiledWorkload workload;
  std::optional<exec::KernelBinaries> binaries;

  const exec::KernelBinaries* found() const { return binaries ? &*binaries : nullptr; }
};

/// The compiled form of a workload that `form` asks for, with the kernels of kernels.json.xz beside
/// it where it is for GPUs.
///
///   device   cuda or cpu
///
/// Throws Error where dc-run cannot execute it: without that file or with one of other kernels on
/// GPUs, where a kernel has no stand-in on CPUs, and as TakeForm.
ExecutableForm TakeExecutable(const ProfiledWorkload& loaded,
                              const AskedForm& form,
                              const std::string& device);

/// The same of what DeclareForm's options name, or the workload's own graph. Throws Error for a
/// backend that there is not.
ExecutableForm TakeExecutable(const ProfiledWorkload& loaded,
                              const std::string& backend,
                              int stage,
                              const std::string& device);

/// Declares --backend and --stage.
void DeclareForm(CLI::App& app, std::string& backend, int& stage);

}  // namespace dcsim
