#include "exec/launch/rank_environment.h"

#include <array>
#include <cstdlib>

#include "model/base/error.h"
#include "model/base/text.h"

namespace dcsim::exec {
namespace {

/// The variables in which a launcher says rank, rank on the machine, and number of ranks.
struct LauncherVariables {
  const char* name;
  const char* rank;
  const char* local_rank;
  const char* size;
  bool scripts_have_rank = false;  // also processes that it did not start, without the others
};

constexpr std::array<LauncherVariables, 3> kLaunchers = {{
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
     /*scripts_have_rank=*/true},  // sbatch
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
}};

constexpr int kMostRanks = 1'000'000;
constexpr int kHighestPort = 65535;

int IntegerVariable(const char* name, const char* launcher, int most) {
  const char* text = std::getenv(name);
  const auto value = text == nullptr ? std::nullopt : FindInteger(text);
  if (!value || *value < 0 || *value > most) {
    throw Error(std::string(launcher) + " started this process, but " + name + " is " +
                (text == nullptr ? "not set" : "'" + std::string(text) + "'") +
                ", expected a whole number from 0 to " + std::to_string(most));
  }
  return static_cast<int>(*value);
}

}  // namespace

std::optional<RankIdentity> FindLauncherIdentity() {
  for (const LauncherVariables& launcher : kLaunchers) {
    if (std::getenv(launcher.rank) == nullptr ||
        (launcher.scripts_have_rank && std::getenv(launcher.size) == nullptr)) {
      continue;
    }
    RankIdentity identity;
    identity.rank = IntegerVariable(launcher.rank, launcher.name, kMostRanks);
    identity.local_rank = IntegerVariable(launcher.local_rank, launcher.name, kMostRanks);
    identity.size = IntegerVariable(launcher.size, launcher.name, kMostRanks);
    if (identity.rank >= identity.size) {
      throw Error(std::string(launcher.rank) + "=" + std::to_string(identity.rank) +
                  ": expected less than " + launcher.size + "=" + std::to_string(identity.size));
    }
    return identity;
  }
  return std::nullopt;
}

RendezvousAddress LauncherRendezvous(const RankIdentity& identity) {
  RendezvousAddress address;
  const char* host = std::getenv("MASTER_ADDR");
  if (host == nullptr) {
    throw Error("MASTER_ADDR is not set; it names the machine of rank 0");
  }
  address.host = host;
  address.port = IntegerVariable("MASTER_PORT", "a launcher", kHighestPort);
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  address.serves = identity.rank == 0 && (agent == nullptr || std::string(agent) != "True");
  return address;
}

}  // namespace dcsim::exec
