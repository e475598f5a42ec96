#pragma once

#include "tools/common/program.h"

namespace dcsim {

// The subcommands of dc-sim, each in a file of its own.
Subcommand InfoCommand();
Subcommand CompareCommand();
Subcommand SimulateCommand();
Subcommand SearchCommand();
Subcommand SweepCommand();
Subcommand FitCommand();
Subcommand ClusterCommand();
Subcommand ExplainCommand();
Subcommand DagCommand();

}  // namespace dcsim
