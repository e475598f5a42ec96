#pragma once

#include <string>
#include <vector>

#include "tools/common/load.h"

namespace dcsim {

/// Which of a workload's graphs a plan file asks for, as far as it says before it is checked.
struct AskedForm {
  Backend backend = Backend::kAten;
  int stage = 0;  // 0: the file does not say one
};

/// Reads `backend` and `stage` of a plan file of any form, with overrides. What is wrong with them
/// is for LoadPlan to say.
AskedForm FindForm(const std::string& plan, const std::vector<Override>& overrides);

/// The workload's graph and profile as `form` asks for them. Of a compiled form the graph is that
/// of graph-inductor-zero3.json.gz or graph-inductor-zero12.json.gz beside the workload's own, and
/// the profile what the workload's own says of its calls (BorrowProfile). Throws Error where there
/// is no such file, or one of another model.
ProfiledWorkload TakeForm(ProfiledWorkload loaded, const AskedForm& form);

}  // namespace dcsim
