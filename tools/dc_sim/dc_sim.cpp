#include "tools/dc_sim/dc_sim.h"

#include "tools/common/libraries.h"
#include "tools/dc_sim/commands.h"

namespace dcsim {

int RunDcSim(int argc, const char* const* argv) {
  const Program program = {
      "dc-sim",
      "Predicts time and memory of one optimizer step under a ZeRO-1/2/3 schedule, before the job "
      "starts.",
      ToolLibraries(),
      {InfoCommand(), SimulateCommand(), FitCommand(), SweepCommand(), SearchCommand(),
       ExplainCommand(), CompareCommand(), ClusterCommand(), DagCommand()}};
  return RunProgram(program, argc, argv);
}

}  // namespace dcsim
