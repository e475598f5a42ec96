#pragma once

#include "tools/common/program.h"

namespace dcsim {

// The subcommands of dc-run, each in a file of its own.
Subcommand CalibrateCommand();
Subcommand CheckCommand();
Subcommand ProfileCommand();
Subcommand StepCommand();
Subcommand ValidateCommand();

}  // namespace dcsim
