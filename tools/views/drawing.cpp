#include "tools/views/drawing.h"

#include <array>

namespace dcsim {

std::string FillColour(DagNodeKind kind) {
  constexpr std::array<const char*, 6> kColours = {"#f4f4f4", "#9ecae9", "#fdae6b",
                                                   "#d9d9d9", "#a1d99b", "#ffffff"};
  return kColours[static_cast<std::size_t>(kind)];
}

DrawingAttributes LineAttributes(bool critical, const std::string& otherwise) {
  return {{"color", critical ? "#d62728" : otherwise}, {"penwidth", critical ? "2.5" : "1"}};
}

std::string EscapedLabel(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '\\' ? "\\\\" : std::string(1, c);
  }
  return escaped;
}

}  // namespace dcsim
