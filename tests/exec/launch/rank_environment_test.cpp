#include "exec/launch/rank_environment.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.h"

namespace dcsim::exec {
namespace {

using testing::HasSubstr;

/// Takes every launcher's variables out of the environment, and leaves it so.
class RankEnvironmentTest : public testing::Test {
 protected:
  RankEnvironmentTest() { Clear(); }
  ~RankEnvironmentTest() override { Clear(); }

  static void Set(const char* name, const char* value) { ::setenv(name, value, /*replace=*/1); }

  /// As torchrun starts the sixth of eight processes on two machines.
  static void SetTorchrun() {
    Set("RANK", "5");
    Set("LOCAL_RANK", "1");
    Set("WORLD_SIZE", "8");
    Set("MASTER_ADDR", "node-0");
    Set("MASTER_PORT", "29500");
  }

 private:
  static void Clear() {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_USE_AGENT_STORE", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS",
          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"}) {
      ::unsetenv(name);
    }
  }
};

void ExpectSixthOfEight(const std::optional<RankIdentity>& identity) {
  ASSERT_TRUE(identity.has_value());
  EXPECT_EQ(identity->rank, 5);
  EXPECT_EQ(identity->local_rank, 1);
  EXPECT_EQ(identity->size, 8);
}

TEST_F(RankEnvironmentTest, NoLauncherGivesNoPlace) {
  EXPECT_FALSE(FindLauncherIdentity().has_value());
}

TEST_F(RankEnvironmentTest, TorchrunGivesThePlace) {
  SetTorchrun();
  ExpectSixthOfEight(FindLauncherIdentity());
}

TEST_F(RankEnvironmentTest, SrunGivesThePlace) {
  Set("SLURM_PROCID", "5");
  Set("SLURM_LOCALID", "1");
  Set("SLURM_NTASKS", "8");
  ExpectSixthOfEight(FindLauncherIdentity());
}

TEST_F(RankEnvironmentTest, MpirunGivesThePlace) {
  Set("OMPI_COMM_WORLD_RANK", "5");
  Set("OMPI_COMM_WORLD_LOCAL_RANK", "1");
  Set("OMPI_COMM_WORLD_SIZE", "8");
  ExpectSixthOfEight(FindLauncherIdentity());
}

// torchrun itself is often started by srun, a process a machine.
TEST_F(RankEnvironmentTest, TorchrunCountsInsideAnSrun) {
  SetTorchrun();
  Set("SLURM_PROCID", "0");
  Set("SLURM_LOCALID", "0");
  Set("SLURM_NTASKS", "2");
  ExpectSixthOfEight(FindLauncherIdentity());
}

// salloc sets the number of tasks for a shell, sbatch the rank 0 for a script: neither is a rank.
TEST_F(RankEnvironmentTest, SlurmAllocationsAreNoRanks) {
  Set("SLURM_NTASKS", "8");
  EXPECT_FALSE(FindLauncherIdentity().has_value());
  ::unsetenv("SLURM_NTASKS");
  Set("SLURM_PROCID", "0");
  EXPECT_FALSE(FindLauncherIdentity().has_value());
}

// Were it ignored, each of the launcher's processes would start all ranks of its own.
TEST_F(RankEnvironmentTest, RankWithoutSizeIsAnError) {
  SetTorchrun();
  ::unsetenv("WORLD_SIZE");
  EXPECT_EQ(ErrorText([] { FindLauncherIdentity(); }),
            "torchrun started this process, but WORLD_SIZE is not set, expected a whole number "
            "from 0 to 1000000");
}

TEST_F(RankEnvironmentTest, MissingLocalRankIsAnError) {
  SetTorchrun();
  ::unsetenv("LOCAL_RANK");
  EXPECT_EQ(ErrorText([] { FindLauncherIdentity(); }),
            "torchrun started this process, but LOCAL_RANK is not set, expected a whole number "
            "from 0 to 1000000");
}

TEST_F(RankEnvironmentTest, RanksAreCounts) {
  SetTorchrun();
  for (const char* text : {"one", "-1", "1.5", "", "99999999999999999999"}) {
    Set("LOCAL_RANK", text);
    EXPECT_EQ(ErrorText([] { FindLauncherIdentity(); }),
              "torchrun started this process, but LOCAL_RANK is '" + std::string(text) +
                  "', expected a whole number from 0 to 1000000");
  }
}

TEST_F(RankEnvironmentTest, RanksLieBelowTheSize) {
  SetTorchrun();
  Set("RANK", "8");
  EXPECT_EQ(ErrorText([] { FindLauncherIdentity(); }), "RANK=8: expected less than WORLD_SIZE=8");
}

TEST_F(RankEnvironmentTest, RanksMeetAtTheMaster) {
  SetTorchrun();
  const RendezvousAddress address = LauncherRendezvous({5, 1, 8});
  EXPECT_EQ(address.host, "node-0");
  EXPECT_EQ(address.port, 29500);
  EXPECT_FALSE(address.serves);
}

TEST_F(RankEnvironmentTest, Rank0ServesUnlessTheAgentDoes) {
  SetTorchrun();
  EXPECT_TRUE(LauncherRendezvous({0, 0, 8}).serves);
  Set("TORCHELASTIC_USE_AGENT_STORE", "False");
  EXPECT_TRUE(LauncherRendezvous({0, 0, 8}).serves);
  Set("TORCHELASTIC_USE_AGENT_STORE", "True");  // torchrun's spelling
  EXPECT_FALSE(LauncherRendezvous({0, 0, 8}).serves);
}

// srun and mpirun do not say where to meet; the job script has to.
TEST_F(RankEnvironmentTest, MissingMasterIsAnError) {
  EXPECT_EQ(ErrorText([] {
              LauncherRendezvous({0, 0, 2});
            }),
            "MASTER_ADDR is not set; it names the machine of rank 0");
  Set("MASTER_ADDR", "node-0");
  EXPECT_THAT(ErrorText([] {
                LauncherRendezvous({0, 0, 2});
              }),
              HasSubstr("MASTER_PORT is not set"));
}

TEST_F(RankEnvironmentTest, PortsHave16Bits) {
  SetTorchrun();
  Set("MASTER_PORT", "65536");
  EXPECT_THAT(ErrorText([] {
                LauncherRendezvous({0, 0, 2});
              }),
              HasSubstr("MASTER_PORT is '65536', expected a whole number from 0 to 65535"));
}

}  // namespace
}  // namespace dcsim::exec
