#include "exec/interpreter/launch_grid.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace dcsim::exec {
namespace {

constexpr std::array<std::string_view, 5> kRules = {
    "Grid1D", "Grid2D", "Grid3D", "Grid2DWithYZOverflow", "MixOrderReductionGrid"};
// Rows of blocks that a grid may have (torch/_inductor/runtime/triton_heuristics.py,
// get_max_y_grid).
constexpr std::int64_t kMostRows = 65535;

std::int64_t CeilDivide(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

std::int64_t NumberOf(const std::map<std::string, std::int64_t>& numbers, const std::string& key) {
  const auto found = numbers.find(key);
  return found == numbers.end() ? 1 : found->second;
}

}  // namespace

std::string FindGridFault(const std::string& rule, const KernelConfig& config) {
  if (std::ranges::find(kRules, rule) == kRules.end()) {
    return "has grid " + rule + ", which dc-run cannot compute";
  }
  if (rule == "MixOrderReductionGrid" && !config.contains("RSPLIT_SIZE")) {
    return "has grid " + rule + " and no RSPLIT_SIZE";
  }
  return "";
}

LaunchGrid GridOf(const std::string& rule,
                  const KernelConfig& config,
                  const std::map<std::string, std::int64_t>& numbers) {
  const auto blocks = [&](const std::string& number, const std::string& block) {
    return CeilDivide(NumberOf(numbers, number), NumberOf(config, block));
  };
  if (rule == "MixOrderReductionGrid") {
    return {blocks("xnumel", "RSPLIT_SIZE"), 1, 1};
  }
  LaunchGrid grid{blocks("xnumel", "XBLOCK"), 1, 1};
  if (rule == "Grid2D" || rule == "Grid3D") {
    grid.y = blocks("ynumel", "YBLOCK");
  }
  if (rule == "Grid3D") {
    grid.z = blocks("znumel", "ZBLOCK");
  }
  if (rule == "Grid2DWithYZOverflow") {
    const std::int64_t rows = blocks("ynumel", "YBLOCK");
    grid.z = CeilDivide(rows, kMostRows);
    grid.y = CeilDivide(rows, grid.z);
  }
  return grid;
}

}  // namespace dcsim::exec
