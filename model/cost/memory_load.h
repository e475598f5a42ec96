#pragma once

#include <cstdint>

#include "model/ir/graph.h"
#include "model/ir/schedule.h"
#include "model/machine/gpu.h"

namespace dcsim {

/// What kernels read and write, each tensor once.
struct MovedBytes {
  Bytes read;
  Bytes written;
};

/// Of memory work, `moved` together: a norm only reads, the others write as much as they read.
MovedBytes MovedByPattern(MemoryPattern pattern, Bytes moved);

/// What kernels that take `device` move to and from memory in a second, bytes: writes count twice,
/// and of what a cache holds (docs/design/costs/contention.md, Memory) only its share of the
/// cache.
double MemoryTraffic(const MovedBytes& moved, Duration device, Bytes cache);

/// How much kernels of that traffic hold up collectives beside them, 0 to 1 of what a plain kernel
/// does whose traffic is `full`: (traffic / full)^2.5.
double MemoryLoad(double traffic, double full);

/// Of kernels on this GPU; none where its file tells nothing of it (Contention::beside_memory).
Share MemoryLoad(const MovedBytes& moved, Duration device, const GpuSpec& gpu);

}  // namespace dcsim
