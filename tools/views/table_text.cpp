#include "tools/views/table_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "model/base/text.h"

namespace dcsim {
namespace {

constexpr std::size_t kLabelWidth = 25;
constexpr std::size_t kValueWidth = 10;

std::vector<std::string> AlignedLines(const std::vector<std::vector<std::string>>& rows,
                                      std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (i < left ? row[i] + pad : pad + row[i]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

std::string TableLine(const std::string& label, const std::string& value, const std::string& note) {
  std::string line = label;
  const std::size_t used = line.size() + value.size();
  const std::size_t width = kLabelWidth + kValueWidth;
  line += std::string(used < width ? width - used : 1, ' ') + value;
  return note.empty() ? line + "\n" : line + "   " + note + "\n";
}

std::string FlushRight(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string FlushLeft(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string AlignColumns(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  return Join(AlignedLines(rows, left), "\n") + "\n";
}

std::string AlignColumns(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::string>& notes) {
  std::vector<std::string> lines = AlignedLines(rows, 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i] += notes[i].empty() ? "" : "   " + notes[i];
  }
  return Join(lines, "\n") + "\n";
}

std::string PartOf(Bytes part, Bytes whole) {
  std::string part_text = FormatBytes(part);
  const std::string whole_text = FormatBytes(whole);
  const std::size_t unit = part_text.find(' ');
  if (part_text.substr(unit) == whole_text.substr(whole_text.find(' '))) {
    part_text.resize(unit);
  }
  return part_text + " of " + whole_text;
}

std::string Thousands(double value) {
  constexpr double kMost = 1e15;  // beyond, digits say nothing any more
  if (!(std::abs(value) < kMost)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
  }
  std::string digits = std::to_string(std::llround(value));
  for (std::size_t i = digits.size(); i > 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string Counted(std::int64_t count, std::string_view one, std::string_view several) {
  return Thousands(static_cast<double>(count)) + " " + std::string(count == 1 ? one : several);
}

std::string Percent(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
  return text.data();
}

std::string SignedPercent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.1f %%", share * 100);
  return text.data();
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace dcsim
