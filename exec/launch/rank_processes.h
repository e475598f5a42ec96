#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>

#include "exec/launch/rank_environment.h"

namespace dcsim::exec {

/// A rank ran out of GPU memory while it executed a schedule: an outcome, which ends the job. The
/// message names rank, task and size.
class RankOutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Ranks that had not ended after the time they were given: they wait for each other, or give
/// memory back and forth without end.
class RanksHang : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a rank process does; what it returns is its exit code. Errors may be thrown.
using RankMain = std::function<int(const RankIdentity&, const RendezvousAddress&)>;

/// Runs `size` ranks as processes of this machine and waits for them. Must be called before
/// anything touches CUDA. Rank 0 serves the store on a port that the system chooses.
///
/// When one fails, dies or throws, the others are ended within 5 seconds, none is left over, and
/// the first failure is what is thrown: Error, SystemError or RankOutOfMemory, naming the rank.
/// Otherwise returns the largest of their exit codes. A signal that ends this process (SIGINT,
/// SIGTERM, SIGHUP) ends the ranks first. Ranks that still run after `limit` are ended, too, and
/// RanksHang is thrown; 0: they may take as long as they like.
int RunRankProcesses(int size, const RankMain& main, std::chrono::seconds limit = {});

}  // namespace dcsim::exec
