#pragma once

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/deepspeed_config.h"
#include "tools/common/load.h"

namespace dcsim {

/// Which of a workload's graphs a plan file asks for, as far as it says before it is checked.
struct AskedForm {
  std::optional<Backend> backend = Backend::kAten;  // none: inductor where the recording has it
  int stage = 0;                                    // 0: the file does not say one
  std::string why = {};                             // why aten, where Inductor's was to be expected
  bool layers = false;                              // compiled each on its own: for fsdp

  friend bool operator==(const AskedForm&, const AskedForm&) = default;
};

/// Reads `backend` and `stage` of a plan file of any form, with overrides. A plan that has every
/// decision made is for aten where it names no backend; so is a spec of deepspeed-eager or fsdp,
/// and one that moves activations, which compiled graphs do not allow. Any other spec leaves the
/// backend to the recording. What is wrong with them is for LoadPlan to say, but for a DeepSpeed
/// configuration, which is read for `job`.
AskedForm FindForm(const std::string& plan,
                   const std::vector<Override>& overrides,
                   const DeepSpeedJob& job);

/// Path of the compiled form of a stage in a workload's folder, or of that whose layers are
/// compiled each on its own, whether there is one or not.
std::string FormFile(const std::string& folder, int stage, bool layers = false);

/// The command that records a workload with its compiled forms, or with that one.
std::string CompiledCommand(const Workload& workload, bool layers = false);

/// The workload's graph and profile as `form` asks for them. Of a compiled form the graph is that
/// of graph-inductor-zero3.json.xz, -zero12 or -layers beside the workload's own, and the profile
/// that of this graph, else what the workload's own says of its calls (BorrowProfile). Where the
/// form leaves the backend to the recording and there is no such file, `notes` takes a line that
/// says so and names the command that records it. Throws Error where a form that is asked for is
/// missing, or is one of another model.
ProfiledWorkload TakeForm(ProfiledWorkload loaded, const AskedForm& form, std::ostream& notes);

/// The same of a workload whose profile on this GPU is read meanwhile.
ProfiledWorkload TakeForm(Workload recorded,
                          const std::string& gpu,
                          OpTimes times,
                          const AskedForm& form,
                          std::ostream& notes);

}  // namespace dcsim
