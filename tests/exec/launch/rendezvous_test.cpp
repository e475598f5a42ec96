#include "exec/launch/rendezvous.h"

#include <arpa/inet.h>
#include <future>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.h"

namespace dcsim::exec {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A port of this machine that another program, so to speak, listens on.
class TakenPort {
 public:
  TakenPort() : handle_(::socket(AF_INET6, SOCK_STREAM, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(handle_, generic, size), 0);
    EXPECT_EQ(::listen(handle_, 1), 0);
    EXPECT_EQ(::getsockname(handle_, generic, &size), 0);
    port_ = ntohs(address.sin6_port);
  }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort() { ::close(handle_); }

  int port() const { return port_; }

 private:
  int handle_;
  int port_ = 0;
};

TEST(RendezvousTest, PortInUseIsOneLine) {
  const TakenPort taken;
  const std::string where = "127.0.0.1:" + std::to_string(taken.port());
  try {
    const Rendezvous rendezvous({"127.0.0.1", taken.port(), /*serves=*/true}, {0, 0, 2});
    FAIL() << "the port is taken";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), AllOf(StartsWith("rank 0: cannot serve the store at " + where + ": "),
                                    HasSubstr("ddress already in use"), Not(HasSubstr("\n"))));
  }
}

TEST(RendezvousTest, EveryRankHearsAllByRank) {
  Rendezvous server({"127.0.0.1", 0, /*serves=*/true}, {0, 0, 2});
  ASSERT_GT(server.port(), 0);
  std::vector<std::string> heard;
  std::thread other([&] {
    Rendezvous rendezvous({"127.0.0.1", server.port(), /*serves=*/false}, {1, 1, 2});
    heard = rendezvous.Exchange("key", "one");
  });
  EXPECT_THAT(server.Exchange("key", "zero"), ElementsAre("zero", "one"));
  other.join();
  EXPECT_THAT(heard, ElementsAre("zero", "one"));
}

// Otherwise a rank that is slow to read would find no store.
TEST(RendezvousTest, ServerFinishesLast) {
  Rendezvous server({"127.0.0.1", 0, /*serves=*/true}, {0, 0, 2});
  auto finished = std::async(std::launch::async, [&] { server.Finish(); });
  Rendezvous other({"127.0.0.1", server.port(), /*serves=*/false}, {1, 1, 2});
  EXPECT_EQ(finished.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  other.Finish();  // returns whatever the server does
  EXPECT_EQ(finished.wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

// NCCL's ids are 128 bytes of any value.
TEST(RendezvousTest, ValuesAreBytes) {
  Rendezvous server({"127.0.0.1", 0, /*serves=*/true}, {0, 0, 1});
  const std::string bytes("\0\n\xff\x80 id", 7);
  server.Set("id", bytes);
  EXPECT_EQ(server.Get("id"), bytes);
}

}  // namespace
}  // namespace dcsim::exec
