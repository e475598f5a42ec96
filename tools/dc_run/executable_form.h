#pragma once

#include <string>

#include "tools/common/compiled_form.h"
#include "tools/common/load.h"

namespace dcsim {

/// The compiled form of a workload that `form` asks for.
///
///   asker    what asks for it, for errors
///   device   cuda or cpu
///
/// Throws Error where dc-run cannot execute it: on GPUs, where a kernel has no stand-in, and as
/// TakeForm.
ProfiledWorkload TakeExecutable(const ProfiledWorkload& loaded,
                                const AskedForm& form,
                                const std::string& asker,
                                const std::string& device);

}  // namespace dcsim
