#pragma once

#include <optional>
#include <string>

namespace dcsim::exec {

/// One process's place in a job.
struct RankIdentity {
  int rank = 0;
  int local_rank = 0;  // on its machine: the GPU it takes
  int size = 1;
};

/// How the ranks of a job find each other.
struct RendezvousAddress {
  std::string host = "127.0.0.1";
  int port = 0;
  bool serves = false;                       // this process serves the store
  std::optional<int> socket = std::nullopt;  // where it serves: bound to `port` already
};

/// The place that a launcher gave this process: torchrun's variables, then srun's, then Open MPI's.
/// Nothing when none of them started it. Throws Error for variables that make no sense together.
std::optional<RankIdentity> FindLauncherIdentity();

/// Where a launcher wants the ranks to meet: MASTER_ADDR and MASTER_PORT; rank 0 serves unless
/// torchrun's agent does (TORCHELASTIC_USE_AGENT_STORE). Throws Error when a variable is missing.
RendezvousAddress LauncherRendezvous(const RankIdentity& identity);

}  // namespace dcsim::exec
