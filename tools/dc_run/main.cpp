#include "tools/common/libraries.h"
#include "tools/dc_run/commands.h"

int main(int argc, char** argv) {
  const dcsim::Program program = {
      "dc-run",
      "Executes ZeRO-1/2/3 schedules of recorded training graphs with "
      "libtorch and NCCL, and measures "
      "them.",
      dcsim::ToolLibraries(),
      {dcsim::CheckCommand(), dcsim::StepCommand(), dcsim::ValidateCommand(),
       dcsim::ProfileCommand(), dcsim::CalibrateCommand()}};
  return dcsim::RunProgram(program, argc, argv);
}
