#pragma once

#include <string>

#include "model/base/units.h"

namespace dcsim {

/// What the host thread spends on each kind of call.
struct HostCosts {
  Duration view;              // an op without a kernel: dispatch alone
  Duration launch;            // an op or copy with a kernel: dispatch, allocation, launch
  Duration collective;        // one NCCL call
  Duration grouped;           // each further one of a group
  Duration copy;              // one asynchronous copy between GPUs
  Duration event;             // record an event, or make a stream wait for one
  Duration synchronize;       // from the end of what the host waits for to its next call
  Duration segment;           // one cudaMalloc or cudaFree
  Duration first_call;        // what the first call of an operator takes longer in a process
  Duration first_collective;  // the same of its first collective, for each rank
  Duration record;     // an event behind a freed tensor that another stream used (record_stream)
  Duration take_back;  // of such memory, at an allocation behind its event
  Duration python_operator;  // a call of an operator from Python, besides its launches
  Duration autograd_node;    // a parameter's gradient handed to it
  Duration compiled_graph;   // a compiled graph, from its call to its first launch
  Duration module_hooks;     // eager ZeRO-3's of a module, in one direction
  int launch_queue = 0;  // kernels of a stream that have not ended, beyond which a launch waits;
                         // 0: no limit
  std::string source;
};

}  // namespace dcsim
