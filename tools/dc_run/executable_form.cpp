#include "tools/dc_run/executable_form.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <utility>

#include "exec/executor/executable.h"
#include "model/base/error.h"
#include "tools/common/count_option.h"
#include "tools/common/file.h"
#include "tools/common/record_command.h"

namespace dcsim {
namespace {

exec::KernelBinaries TakeBinaries(const Workload& compiled) {
  const std::string path = (std::filesystem::path(compiled.folder) / "kernels.json.xz").string();
  const std::string made = "; made by: python -m dcrecord kernels " + compiled.folder;
  if (!FileExists(path)) {
    throw Error("backend inductor: GPUs run compiled kernels, and there is no " + path + made);
  }
  exec::KernelBinaries binaries = exec::ParseKernelBinaries(ReadFile(path), path);
  if (const std::string fault = exec::FindUnlaunchable(compiled.graph, binaries); !fault.empty()) {
    throw Error(path + ": " + fault + made);
  }
  return binaries;
}

}  // namespace

ExecutableForm TakeExecutable(const ProfiledWorkload& loaded,
                              const AskedForm& form,
                              const std::string& device) {
  ExecutableForm taken{TakeForm(loaded, form, std::cerr), {}};
  const Workload& compiled = taken.workload.workload;
  if (device != "cpu") {
    taken.binaries = TakeBinaries(compiled);
  } else if (const std::string fault = exec::FindUnexecutable(compiled.graph); !fault.empty()) {
    throw Error(FormFile(compiled.folder, form.stage) + ": " + fault +
                "; recorded by: " + RecordCommand(compiled.graph).SetFlag("--stand-ins").Text());
  }
  return taken;
}

ExecutableForm TakeExecutable(const ProfiledWorkload& loaded,
                              const std::string& backend,
                              int stage,
                              const std::string& device) {
  if (backend == "aten") {
    return {loaded, {}};
  }
  if (backend != "inductor") {
    throw Error("--backend " + backend + ": expected aten or inductor");
  }
  return TakeExecutable(loaded, AskedForm{Backend::kInductor, stage}, device);
}

void DeclareForm(CLI::App& app, std::string& backend, int& stage) {
  app.add_option("--backend", backend, "aten, or inductor: the compiled graph");
  AddCount(app, "--stage", stage, {1, 3}, "ZeRO stage of the compiled graph");
}

}  // namespace dcsim
