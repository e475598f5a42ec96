// Ranks as processes: what they report, and that none is left over whatever happens to them.

#include "exec/launch/rank_processes.h"

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exec/launch/rendezvous.h"
#include "model/base/error.h"

namespace dcsim::exec {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

/// Whether this process has no children, running or dead.
bool NobodyIsLeft() {
  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

std::ptrdiff_t OpenFiles() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

/// The message of what a job throws, after checking its type.
template <typename Failure>
std::string FailureOf(int size, const RankMain& main, seconds limit = {}) {
  try {
    RunRankProcesses(size, main, limit);
  } catch (const Failure& failure) {
    return failure.what();
  }
  ADD_FAILURE() << "expected a failure";
  return "";
}

void Hang() {
  std::this_thread::sleep_for(seconds(60));
}

class RankProcessesTest : public testing::Test {
 protected:
  ~RankProcessesTest() override { EXPECT_TRUE(NobodyIsLeft()); }
};

TEST_F(RankProcessesTest, GiveTheLargestExitCode) {
  EXPECT_EQ(RunRankProcesses(3, [](const RankIdentity&, const auto&) { return 0; }), 0);
  EXPECT_EQ(
      RunRankProcesses(3, [](const RankIdentity& rank, const auto&) { return rank.rank % 2; }), 1);
}

TEST_F(RankProcessesTest, AreProcessesOfTheirOwn) {
  const pid_t parent = ::getpid();
  EXPECT_EQ(RunRankProcesses(2, [parent](const RankIdentity&,
                                         const auto&) { return ::getppid() == parent ? 0 : 1; }),
            0);
}

// A port that nobody holds is another program's by the time rank 0 listens on it.
TEST_F(RankProcessesTest, HoldThePortUntilRankZeroServesOnIt) {
  const auto main = [](const RankIdentity& identity, const RendezvousAddress& address) {
    const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in wanted{};
    wanted.sin_family = AF_INET;
    wanted.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    wanted.sin_port = htons(static_cast<std::uint16_t>(address.port));
    const bool taken = ::bind(handle, reinterpret_cast<sockaddr*>(&wanted), sizeof(wanted)) == 0;
    Rendezvous rendezvous(address, identity);
    const auto all = rendezvous.Exchange("taken", taken ? "yes" : "no");
    rendezvous.Finish();
    return all == std::vector<std::string>{"no", "no"} ? 0 : 1;
  };
  EXPECT_EQ(RunRankProcesses(2, main), 0);
}

// What one rank says, all hear, by rank; the store is where the parent told them.
TEST_F(RankProcessesTest, ExchangeResults) {
  const auto main = [](const RankIdentity& identity, const RendezvousAddress& address) {
    Rendezvous rendezvous(address, identity);
    const auto all = rendezvous.Exchange("result", "of rank " + std::to_string(identity.rank));
    const bool right = identity.size == 3 && identity.local_rank == identity.rank &&
                       all == std::vector<std::string>{"of rank 0", "of rank 1", "of rank 2"};
    rendezvous.Finish();
    return right ? 0 : 1;
  };
  EXPECT_EQ(RunRankProcesses(3, main), 0);
}

TEST_F(RankProcessesTest, BadInputStaysBadInput) {
  const auto main = [](const RankIdentity&, const auto&) -> int { throw Error("plan.yaml: bad"); };
  EXPECT_EQ(FailureOf<Error>(2, main), "plan.yaml: bad");
}

TEST_F(RankProcessesTest, FailuresNameTheRankOnce) {
  const auto fail = [](const std::string& what) {
    return [what](const RankIdentity& identity, const auto&) -> int {
      return identity.rank == 1 ? throw SystemError(what) : 0;
    };
  };
  EXPECT_EQ(FailureOf<SystemError>(2, fail("disk on fire")), "rank 1: disk on fire");
  EXPECT_EQ(FailureOf<SystemError>(2, fail("rank 1: disk on fire")), "rank 1: disk on fire");
}

TEST_F(RankProcessesTest, OutOfMemoryIsAnOutcome) {
  const auto main = [](const RankIdentity& identity, const auto&) -> int {
    return identity.rank == 2 ? throw RankOutOfMemory("rank 2, aten::mm: no memory") : 0;
  };
  EXPECT_EQ(FailureOf<RankOutOfMemory>(3, main), "rank 2, aten::mm: no memory");
}

// One has ended; the other is ended with the job.
TEST_F(RankProcessesTest, HaveALimit) {
  const auto main = [](const RankIdentity& identity, const auto&) {
    if (identity.rank == 1) {
      Hang();
    }
    return 0;
  };
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(FailureOf<RanksHang>(2, main, seconds(1)), "ranks have not ended after 1 s");
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST_F(RankProcessesTest, MayEndWithinTheirLimit) {
  EXPECT_EQ(RunRankProcesses(
                2, [](const RankIdentity&, const auto&) { return 1; }, seconds(30)),
            1);
}

TEST_F(RankProcessesTest, KilledRanksAreNamed) {
  const auto main = [](const RankIdentity& identity, const auto&) {
    return identity.rank == 1 ? ::raise(SIGKILL) : 0;
  };
  EXPECT_EQ(FailureOf<SystemError>(2, main), "rank 1 was ended by signal 9 (Killed)");
}

// Behind timeout(1), say: when the job's process is gone, so are the ranks, not a little later.
TEST_F(RankProcessesTest, EndBeforeAJobThatIsTerminated) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t job = ::fork();
  if (job == 0) {
    const auto tell = [&](const RankIdentity&, const auto&) {
      const pid_t self = ::getpid();
      const bool told = ::write(ends[1], &self, sizeof(self)) == sizeof(self);
      Hang();
      return told ? 0 : 1;
    };
    RunRankProcesses(2, tell);
    ::_exit(0);
  }
  pid_t ranks[2];
  for (pid_t& rank : ranks) {
    ASSERT_EQ(::read(ends[0], &rank, sizeof(rank)), static_cast<ssize_t>(sizeof(rank)));
  }
  ::kill(job, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(job, &status, 0), job);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  for (const pid_t rank : ranks) {
    EXPECT_EQ(::kill(rank, 0), -1);
    EXPECT_EQ(errno, ESRCH);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RankProcessesTest, RanksThatExitAreNamed) {
  const auto main = [](const RankIdentity& identity, const auto&) -> int {
    if (identity.rank == 0) {
      ::_exit(7);  // as a library does that gives up
    }
    return 0;
  };
  EXPECT_EQ(FailureOf<SystemError>(2, main), "rank 0 ended with code 7");
}

// The others may not notice that a rank has failed: NCCL waits for it forever.
TEST_F(RankProcessesTest, FailuresEndThoseThatHang) {
  const auto start = std::chrono::steady_clock::now();
  const auto main = [](const RankIdentity& identity, const auto&) -> int {
    if (identity.rank == 2) {
      throw SystemError("ncclAllGather: unhandled system error");
    }
    Hang();
    return 0;
  };
  EXPECT_EQ(FailureOf<SystemError>(3, main), "rank 2: ncclAllGather: unhandled system error");
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

/// The largest number of open files, lowered while it lives.
class FileLimit {
 public:
  explicit FileLimit(int files) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered{static_cast<rlim_t>(files), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Rank 0's pipe takes the two lowest free files and leaves one open here; rank 1's finds one only.
TEST_F(RankProcessesTest, RanksEndWhenNotAllCanStart) {
  const int lowest_free = ::dup(STDIN_FILENO);
  ::close(lowest_free);
  const FileLimit limit(lowest_free + 2);
  const auto main = [](const RankIdentity&, const auto&) {
    Hang();
    return 0;
  };
  EXPECT_EQ(FailureOf<SystemError>(2, main), "pipe: Too many open files");
}

TEST_F(RankProcessesTest, JobsLeaveNoFilesOpen) {
  const auto before = OpenFiles();
  RunRankProcesses(2, [](const RankIdentity&, const auto&) { return 0; });
  EXPECT_EQ(OpenFiles(), before);
  FailureOf<Error>(2, [](const RankIdentity&, const auto&) -> int { throw Error("bad"); });
  EXPECT_EQ(OpenFiles(), before);
}

// A job that the user or a scheduler kills with SIGKILL cannot clean up. Its ranks become children
// of this process (a subreaper), which sees how they end.
TEST_F(RankProcessesTest, KilledJobsLeaveNobodyBehind) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t job = ::fork();
  if (job == 0) {
    RunRankProcesses(2, [&ready](const RankIdentity&, const auto&) {
      const bool told = ::write(ready[1], "r", 1) == 1;
      Hang();
      return told ? 0 : 1;
    });
    ::_exit(0);
  }
  char letters[2];
  for (char& letter : letters) {
    ASSERT_EQ(::read(ready[0], &letter, 1), 1);
  }
  ::kill(job, SIGKILL);
  std::vector<int> signals;
  for (int status = 0; ::waitpid(-1, &status, 0) > 0;) {
    signals.push_back(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  }
  EXPECT_THAT(signals, ElementsAre(SIGKILL, SIGKILL, SIGKILL));
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace dcsim::exec
