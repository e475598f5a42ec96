#pragma once

namespace dcsim {

/// The program dc-sim: runs what the command line asks for, and returns its exit code.
int RunDcSim(int argc, const char* const* argv);

}  // namespace dcsim
