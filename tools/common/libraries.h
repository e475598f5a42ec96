#pragma once

#include <string>

namespace dcsim {

/// Names and versions of the libraries that the tools are built with, for --version.
std::string ToolLibraries();

}  // namespace dcsim
