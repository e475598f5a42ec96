#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace dcsim {

/// Wrong input: a file, flag, key, graph or plan. The message says where, what, and what was
/// expected. Thrown anywhere, caught in main only; exit code 2.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A failing disk, GPU, NCCL or rank. The message names the call, the code and its text. Caught in
/// main only; exit code 3.
class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace internal {

/// Collects the message of a failed DCSIM_CHECK and aborts the process when destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

}  // namespace internal
}  // namespace dcsim

/// Aborts with a message when one of the project's own invariants is broken. On in every build.
/// Never for input, which is `Error`. Use: DCSIM_CHECK(a < b) << "why this must hold";
#define DCSIM_CHECK(condition) \
  if (condition) [[likely]] {  \
  } else                       \
    ::dcsim::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()
