#include "model/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace dcsim {
namespace {

/// Optimal string alignment distance: Levenshtein's with swaps of neighbours.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const std::size_t replace = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

std::string ThreeDigits(double value) {
  std::array<char, 32> text{};
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;  // 9.996 is 10.0, not 10.00
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

template <typename Number>
std::optional<Number> FindWhole(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || text.empty()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<std::string_view> FindNearestName(std::string_view name,
                                                std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestName = 100;  // hostile input must not cost quadratic time
  if (name.size() > kLongestName) {
    return std::nullopt;
  }
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 3);
  std::optional<std::string_view> nearest;
  std::size_t fewest = limit + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t edits = EditDistance(name, candidate);
    if (edits < fewest && edits < candidate.size()) {
      fewest = edits;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> candidates) {
  const auto nearest = FindNearestName(name, candidates);
  return nearest ? ", did you mean '" + std::string(*nearest) + "'?" : std::string();
}

std::string JoinAlternatives(std::span<const std::string_view> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string Join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += i == 0 ? std::string_view() : separator;
    text += parts[i];
  }
  return text;
}

std::optional<std::int64_t> FindInteger(std::string_view text) {
  return FindWhole<std::int64_t>(text);
}

std::optional<double> FindNumber(std::string_view text) {
  const auto value = FindWhole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::uint64_t HashBytes(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  }
  return hash;
}

std::string HexDigits(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string FormatDuration(Duration duration) {
  const double ns = static_cast<double>(duration.ns());
  if (std::abs(ns) < 1e3) {
    return std::to_string(duration.ns()) + " ns";
  }
  if (std::abs(ns) < 999.5e3) {
    return ThreeDigits(ns / 1e3) + " us";
  }
  if (std::abs(ns) < 999.5e6) {
    return ThreeDigits(ns / 1e6) + " ms";
  }
  return ThreeDigits(ns / 1e9) + " s";
}

std::string FormatBytes(Bytes bytes) {
  const double count = static_cast<double>(bytes.count());
  if (std::abs(count) < 1024) {
    return std::to_string(bytes.count()) + " B";
  }
  if (std::abs(count) < 1024.0 * 1024) {
    return ThreeDigits(count / 1024) + " KiB";
  }
  if (std::abs(count) < 1024.0 * 1024 * 1024) {
    return ThreeDigits(bytes.mib()) + " MiB";
  }
  return ThreeDigits(bytes.gib()) + " GiB";
}

std::string PrintBytes(Bytes bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::int64_t count = bytes.count();
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && count != 0 && count % 1024 == 0) {
    count /= 1024;
    ++unit;
  }
  return std::to_string(count) + " " + std::string(kUnits[unit]);
}

}  // namespace dcsim
