#include "model/base/quantity.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "model/base/text.h"

namespace dcsim {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

/// Splits "500e6 elements" into number and unit and scales; the exponent's letter belongs to the
/// number, so the split is at the last character that can end one.
std::optional<double> FindScaled(std::string_view text, std::initializer_list<Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) {
      continue;
    }
    std::string_view number = text.substr(0, text.size() - unit.name.size());
    if (number.ends_with(' ')) {
      number.remove_suffix(1);
    }
    const auto value = FindNumber(number);
    if (value && *value >= 0) {
      return *value * unit.factor;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> FindWholeScaled(std::string_view text,
                                            std::initializer_list<Unit> units) {
  constexpr double kLargest = 9.2e18;
  const auto value = FindScaled(text, units);
  if (!value || *value > kLargest) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(std::llround(*value));
}

}  // namespace

std::optional<Bytes> FindBytes(std::string_view text) {
  const auto count = FindWholeScaled(text, {{"KiB", 1024.0},
                                            {"MiB", 1048576.0},
                                            {"GiB", 1073741824.0},
                                            {"TiB", 1099511627776.0},
                                            {"kB", 1e3},
                                            {"MB", 1e6},
                                            {"GB", 1e9},
                                            {"TB", 1e12},
                                            {"B", 1.0}});
  return count ? std::optional(Bytes(*count)) : std::nullopt;
}

std::optional<Duration> FindDuration(std::string_view text) {
  const auto ns = FindWholeScaled(text, {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}});
  return ns ? std::optional(Duration::FromNs(*ns)) : std::nullopt;
}

std::optional<BytesPerSecond> FindBytesPerSecond(std::string_view text) {
  const auto count =
      FindWholeScaled(text, {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}});
  return count ? std::optional(BytesPerSecond(*count)) : std::nullopt;
}

std::optional<std::int64_t> FindElements(std::string_view text) {
  return FindWholeScaled(text, {{"elements", 1.0}});
}

std::optional<double> FindFlopsPerSecond(std::string_view text) {
  return FindScaled(text, {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}});
}

}  // namespace dcsim
