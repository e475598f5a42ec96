#include "tools/dc_sim/dc_sim.h"

int main(int argc, char** argv) {
  return dcsim::RunDcSim(argc, argv);
}
