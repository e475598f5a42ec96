#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "model/base/text.h"

namespace dcsim {

/// From the least to the most that an option takes, both included.
struct CountRange {
  std::int64_t least = 1;
  std::int64_t most = 1'000'000'000;
};

/// The number that an option's text says. Throws CLI::ValidationError, which names the option and
/// the range, for anything but a whole number in it: no sign wraps, nothing is cut off.
inline std::int64_t ParseCount(const std::string& name, const std::string& text, CountRange range) {
  const auto count = FindInteger(text);
  if (!count || *count < range.least || *count > range.most) {
    throw CLI::ValidationError(name, "expected a whole number from " + std::to_string(range.least) +
                                         " to " + std::to_string(range.most) + ", found '" + text +
                                         "'");
  }
  return *count;
}

/// Declares an option that takes a whole number.
template <typename Count>
CLI::Option* AddCount(CLI::App& app,
                      const std::string& name,
                      Count& target,
                      CountRange range,
                      const std::string& help) {
  const auto read = [name, range, &target](const std::string& text) {
    target = static_cast<Count>(ParseCount(name, text, range));
  };
  return app.add_option_function<std::string>(name, read, help)->type_name("INT");
}

/// Declares an option that takes seconds, 0 or more.
inline CLI::Option* AddSeconds(CLI::App& app,
                               const std::string& name,
                               double& target,
                               const std::string& help) {
  const auto read = [name, &target](const std::string& text) {
    constexpr double kMost = 1e9;
    const auto seconds = FindNumber(text);
    if (!seconds || *seconds < 0 || *seconds > kMost) {
      throw CLI::ValidationError(name,
                                 "expected seconds from 0 to 1000000000, found '" + text + "'");
    }
    target = *seconds;
  };
  return app.add_option_function<std::string>(name, read, help)->type_name("FLOAT");
}

}  // namespace dcsim
