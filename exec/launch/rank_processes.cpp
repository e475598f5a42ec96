#include "exec/launch/rank_processes.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

constexpr char kInputError = 'E';
constexpr char kSystemFailure = 'S';
constexpr char kOutOfMemory = 'O';
constexpr auto kGrace = std::chrono::seconds(5);  // for the other ranks, once one has failed

/// A rank process, seen from the parent. Its report is a letter and a message, empty when all went
/// well. A process that still runs when this goes is killed.
struct RankProcess {
  RankProcess(pid_t process, int pipe) : pid(process), report(pipe) {}
  RankProcess(RankProcess&& other) noexcept
      : pid(other.pid),
        report(std::exchange(other.report, -1)),
        running(std::exchange(other.running, false)),
        status(other.status) {}
  RankProcess& operator=(RankProcess&&) = delete;
  ~RankProcess() {
    Kill();
    if (report >= 0) {
      ::close(report);
    }
  }

  void Kill() {
    if (running) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      running = false;
    }
  }

  pid_t pid;
  int report;  // read end of its pipe
  bool running = true;
  int status = 0;
};

[[noreturn]] void FailCall(const std::string& call) {
  throw SystemError(call + ": " + std::strerror(errno));
}

/// While one exists, signals that end a process are answered by Wait instead.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      ::sigaddset(&held_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { Release(); }

  /// Lets them end the process as before.
  void Release() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  /// The signal that comes within 10 ms, or -1.
  int Wait() const {
    constexpr timespec kPause{0, 10'000'000};
    return ::sigtimedwait(&held_, nullptr, &kPause);
  }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

/// A port of this machine for the store, held until rank 0 listens on it: no other program, and no
/// connection of another rank's, can get it in between.
class HeldPort {
 public:
  HeldPort() : handle_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (handle_ < 0 || ::bind(handle_, generic, size) != 0 ||
        ::getsockname(handle_, generic, &size) != 0) {
      FailCall("looking for a free port");
    }
    port_ = ntohs(address.sin_port);
  }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;
  ~HeldPort() { ::close(handle_); }

  /// What the process of a rank knows of it, which is a copy of this one: rank 0 takes the socket.
  RendezvousAddress AddressFor(int rank) const {
    if (rank != 0) {
      ::close(handle_);
      return {"127.0.0.1", port_, /*serves=*/false, std::nullopt};
    }
    return {"127.0.0.1", port_, /*serves=*/true, handle_};
  }

 private:
  int handle_;
  int port_ = 0;
};

void WriteReport(int pipe, char kind, const std::string& message) {
  const std::string report = kind + message;
  const char* data = report.data();
  std::size_t left = report.size();
  while (left > 0) {
    const ssize_t written = ::write(pipe, data, left);
    if (written <= 0) {
      return;  // the parent is gone, and with it whoever would read this
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
}

/// What a rank process runs after fork; never returns.
[[noreturn]] void RunChild(const RankMain& main,
                           const RankIdentity& identity,
                           const RendezvousAddress& address,
                           int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed parent leaves nobody behind
  int code = 3;
  const std::string who = "rank " + std::to_string(identity.rank) + ": ";
  try {
    code = main(identity, address);
  } catch (const Error& error) {
    WriteReport(report, kInputError, error.what());
    code = 2;
  } catch (const RankOutOfMemory& error) {
    WriteReport(report, kOutOfMemory, error.what());
  } catch (const std::exception& error) {
    const std::string text = error.what();
    WriteReport(report, kSystemFailure, (text.starts_with("rank ") ? "" : who) + text);
  }
  std::cout.flush();
  ::_exit(code);
}

std::vector<RankProcess> StartRanks(int size, const RankMain& main, const HeldSignals& held) {
  std::cout.flush();
  const HeldPort port;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (::pipe(ends) != 0) {
      FailCall("pipe");
    }
    const pid_t pid = ::fork();
    if (pid < 0) {
      ::close(ends[0]);
      ::close(ends[1]);
      FailCall("fork");
    }
    if (pid == 0) {
      ::close(ends[0]);
      held.Release();
      RunChild(main, {rank, rank, size}, port.AddressFor(rank), ends[1]);
    }
    ::close(ends[1]);
    ranks.emplace_back(pid, ends[0]);
  }
  return ranks;
}

std::string ReadReport(const RankProcess& rank) {
  std::string report;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(rank.report, buffer, sizeof(buffer))) > 0;) {
    report.append(buffer, static_cast<std::size_t>(count));
  }
  return report;
}

/// Notes processes that have ended; the first that failed, or -1.
int Reap(std::vector<RankProcess>& ranks) {
  int failed = -1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].running && ::waitpid(ranks[i].pid, &ranks[i].status, WNOHANG) == ranks[i].pid) {
      ranks[i].running = false;
      const bool fine = WIFEXITED(ranks[i].status) && WEXITSTATUS(ranks[i].status) <= 1;
      failed = !fine && failed < 0 ? static_cast<int>(i) : failed;
    }
  }
  return failed;
}

bool AnyRunning(const std::vector<RankProcess>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [](const RankProcess& r) { return r.running; });
}

void EndOthers(std::vector<RankProcess>& ranks) {
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  while (AnyRunning(ranks) && std::chrono::steady_clock::now() < deadline) {
    Reap(ranks);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (RankProcess& rank : ranks) {
    rank.Kill();
  }
}

/// Waits until all ranks have ended or one has failed: which, or -1. Throws RanksHang behind a
/// limit other than 0. A signal that ends this
/// process ends the ranks first, memory and all: a killed parent would leave them to the system,
/// which takes seconds to give their memory back.
int Watch(std::vector<RankProcess>& ranks, const HeldSignals& held, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int failed = -1;
  while (AnyRunning(ranks) && failed < 0) {
    failed = Reap(ranks);
    if (limit.count() > 0 && std::chrono::steady_clock::now() >= deadline && AnyRunning(ranks)) {
      throw RanksHang("ranks have not ended after " + std::to_string(limit.count()) + " s");
    }
    if (const int signal = held.Wait(); signal >= 0) {
      for (RankProcess& rank : ranks) {
        rank.Kill();
      }
      held.Release();
      ::raise(signal);
    }
  }
  return failed;
}

[[noreturn]] void ThrowFailure(const RankProcess& rank, int index) {
  const std::string who = "rank " + std::to_string(index);
  const std::string report = ReadReport(rank);
  if (!report.empty() && report.front() == kInputError) {
    throw Error(report.substr(1));
  }
  if (!report.empty() && report.front() == kOutOfMemory) {
    throw RankOutOfMemory(report.substr(1));
  }
  if (!report.empty()) {
    throw SystemError(report.substr(1));
  }
  if (WIFSIGNALED(rank.status)) {
    const int signal = WTERMSIG(rank.status);
    throw SystemError(who + " was ended by signal " + std::to_string(signal) + " (" +
                      ::strsignal(signal) + ")");
  }
  throw SystemError(who + " ended with code " + std::to_string(WEXITSTATUS(rank.status)));
}

}  // namespace

int RunRankProcesses(int size, const RankMain& main, std::chrono::seconds limit) {
  const HeldSignals held;
  std::vector<RankProcess> ranks = StartRanks(size, main, held);
  const int failed = Watch(ranks, held, limit);
  if (failed >= 0) {
    EndOthers(ranks);
    ThrowFailure(ranks[static_cast<std::size_t>(failed)], failed);
  }
  int code = 0;
  for (const RankProcess& rank : ranks) {
    code = std::max(code, WEXITSTATUS(rank.status));
  }
  return code;
}

}  // namespace dcsim::exec
