#include "sim/search/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace dcsim {
namespace {

/// The failure of the lowest task.
class FirstFailure {
 public:
  void Note(std::size_t index, std::exception_ptr failure) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ == nullptr || index < index_) {
      index_ = index;
      failure_ = std::move(failure);
    }
  }
  void ThrowIfAny() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  std::mutex mutex_;
  std::size_t index_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

void ParallelFor(std::size_t count,
                 unsigned threads,
                 const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next = 0;
  FirstFailure failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        failure.Note(i, std::current_exception());
      }
    }
  };
  std::vector<std::thread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
    try {
      helpers.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // those that the system gives do all the work
    }
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  failure.ThrowIfAny();
}

unsigned ThreadsFor(unsigned asked) {
  return asked > 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace dcsim
