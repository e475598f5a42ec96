#include "tools/common/libraries.h"
#include "tools/dc_sim/commands.h"

int main(int argc, char** argv) {
  const dcsim::Program program = {
      "dc-sim",
      "Predicts time and memory of one optimizer step under a ZeRO-1/2/3 schedule, before the job "
      "starts.",
      dcsim::ToolLibraries(),
      {dcsim::InfoCommand(), dcsim::SimulateCommand(), dcsim::FitCommand(), dcsim::SweepCommand(),
       dcsim::SearchCommand(), dcsim::ExplainCommand(), dcsim::CompareCommand(),
       dcsim::ClusterCommand(), dcsim::DagCommand()}};
  return dcsim::RunProgram(program, argc, argv);
}
