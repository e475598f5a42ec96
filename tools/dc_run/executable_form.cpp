#include "tools/dc_run/executable_form.h"

#include <iostream>

#include "exec/executor/executable.h"
#include "model/base/error.h"
#include "tools/common/record_command.h"

namespace dcsim {

ProfiledWorkload TakeExecutable(const ProfiledWorkload& loaded,
                                const AskedForm& form,
                                const std::string& asker,
                                const std::string& device) {
  if (device != "cpu") {
    throw Error(asker + ": backend inductor: dc-run executes compiled graphs with --device cpu");
  }
  ProfiledWorkload compiled = TakeForm(loaded, form, std::cerr);
  const Graph& graph = compiled.workload.graph;
  if (const std::string fault = exec::FindUnexecutable(graph); !fault.empty()) {
    throw Error(FormFile(compiled.workload.folder, form.stage) + ": " + fault +
                "; recorded by: " + RecordCommand(graph).SetFlag("--stand-ins").Text());
  }
  return compiled;
}

}  // namespace dcsim
