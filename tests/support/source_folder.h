#pragma once

#include <string>

namespace dcsim {

/// The checkout that the tests were built from, without a slash at its end. Only the source of this
/// function is compiled with the path, so that all others are found by a compiler cache.
std::string SourceFolder();

}  // namespace dcsim
