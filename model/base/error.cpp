#include "model/base/error.h"

#include <cstdlib>
#include <iostream>

namespace dcsim::internal {

CheckFailure::CheckFailure(const char* condition, const char* file, int line) {
  stream_ << file << ":" << line << ": internal error, please report it: " << condition << " ";
}

CheckFailure::~CheckFailure() {
  std::cerr << stream_.str() << std::endl;
  std::abort();
}

}  // namespace dcsim::internal
