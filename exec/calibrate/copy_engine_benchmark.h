#pragma once

#include "exec/calibrate/copy_engine_fit.h"
#include "exec/communicator/communicator.h"
#include "exec/launch/rendezvous.h"

namespace dcsim::exec {

/// Times gathers by copy engines of all ranks at once: of one small tensor, of many, and large ones
/// that follow each other. All ranks call it together; every rank gets the same sample.
CopyEngineSample BenchmarkCopyEngines(Communicator& communicator, Rendezvous& rendezvous);

}  // namespace dcsim::exec
