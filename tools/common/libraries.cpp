#include "tools/common/libraries.h"

#include <CLI/CLI.hpp>
#include <lzma.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <boost/version.hpp>

namespace dcsim {

std::string ToolLibraries() {
  const auto join = [](int major, int minor, int patch) {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  };
  const std::string graphviz = DCSIM_GRAPHVIZ_VERSION;
  return "Boost " + join(BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100) +
         ", CLI11 " + CLI11_VERSION + ", nlohmann-json " +
         join(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
              NLOHMANN_JSON_VERSION_PATCH) +
         ", yaml-cpp " + DCSIM_YAML_VERSION + ", " +
         (graphviz.empty() ? "no Graphviz" : "Graphviz " + graphviz) + ", zlib " + zlibVersion() +
         ", liblzma " + lzma_version_string();
}

}  // namespace dcsim
