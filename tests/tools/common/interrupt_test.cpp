#include "tools/common/interrupt.h"

#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

namespace dcsim {
namespace {

TEST(InterruptTest, NotesTheFirstSignal) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.requested());
  std::raise(SIGTERM);
  EXPECT_TRUE(interrupt.requested());
}

TEST(InterruptTest, TakesTwoSignalsAtOnceForOneRequest) {
  const Interrupt interrupt;
  std::raise(SIGINT);
  std::raise(SIGINT);
  EXPECT_TRUE(interrupt.requested());
}

TEST(InterruptTest, ForgetsTheRequestOfAnEarlierCommand) {
  {
    const Interrupt interrupt;
    std::raise(SIGINT);
  }
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.requested());
}

// Python has a handler of its own.
TEST(InterruptTest, GivesBackTheHandlerBefore) {
  std::signal(SIGINT, SIG_IGN);
  { const Interrupt interrupt; }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(InterruptDeathTest, EndsTheProcessAtASecondRequest) {
  const Interrupt interrupt;
  EXPECT_EXIT(
      {
        std::raise(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(600));
        std::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace dcsim
