#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dcsim {

/// Position of the first control character of a UTF-8 text but tab and line ends, or nothing: what
/// moves a terminal's cursor or changes its colours. Those of Latin-1 (U+0080 to U+009F) have two
/// bytes.
inline std::optional<std::size_t> FindControlCharacter(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line = text[i] == '\n' || text[i] == '\t' || text[i] == '\r';
    const bool ascii = (byte(i) < 0x20 && !line) || byte(i) == 0x7F;
    const bool latin =
        byte(i) == 0xC2 && i + 1 < text.size() && byte(i + 1) >= 0x80 && byte(i + 1) <= 0x9F;
    if (ascii || latin) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace dcsim
