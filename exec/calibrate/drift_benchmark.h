#pragma once

#include <vector>

#include "exec/communicator/communicator.h"
#include "exec/launch/rendezvous.h"
#include "model/base/units.h"

namespace dcsim::exec {

/// How far apart ranks were that had gone on together before. Medians over repeats.
struct DriftSample {
  Duration since;  // they went on together: the same products on each, the mean over ranks
  Duration apart;  // from the first rank's start of the next collective to the last one's
  Duration least;  // of all repeats
  Duration most;
};

/// Times how ranks that a collective brought together come apart over products, under a load of
/// seconds that brings clocks to what the power limit leaves. Spans come from every rank's kernel
/// records on one clock. All ranks call it together; every rank gets the same samples.
std::vector<DriftSample> BenchmarkDrift(Communicator& communicator, Rendezvous& rendezvous);

}  // namespace dcsim::exec
