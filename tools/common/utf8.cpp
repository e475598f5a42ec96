#include "tools/common/utf8.h"

#include <algorithm>

#include "model/base/control_text.h"

namespace dcsim {
namespace {

bool IsWithin(unsigned char byte, unsigned char least, unsigned char most) {
  return least <= byte && byte <= most;
}

/// Bytes of a character by its first one; 0 when no character begins so.
std::size_t LengthByLead(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (IsWithin(lead, 0xC2, 0xDF)) {
    return 2;
  }
  if (IsWithin(lead, 0xE0, 0xEF)) {
    return 3;
  }
  return IsWithin(lead, 0xF0, 0xF4) ? 4 : 0;
}

bool SecondFits(unsigned char lead, unsigned char second) {
  const unsigned char least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return IsWithin(second, least, most);
}

/// Length of the character that a text begins with; 0 when it begins with none.
std::size_t CharacterLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = LengthByLead(lead);
  if (length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!(i == 1 ? SecondFits(lead, byte) : IsWithin(byte, 0x80, 0xBF))) {
      return 0;
    }
  }
  return length;
}

std::string Escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || FindControlCharacter(character)) {
      for (const char each : character) {
        const auto byte = static_cast<unsigned char>(each);
        escaped += "\\x";
        escaped += kDigits[byte / 16];
        escaped += kDigits[byte % 16];
      }
    } else {
      escaped += character;
    }
    text.remove_prefix(character.size());
  }
  return escaped;
}

/// Cuts between characters: not before a byte that continues one.
std::string Shortened(const std::string& line) {
  constexpr std::size_t kMost = 600;
  constexpr std::size_t kFirst = 400;
  constexpr std::size_t kLast = 150;
  if (line.size() <= kMost) {
    return line;
  }
  const auto boundary = [&line](std::size_t at) {
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0U) == 0x80U) {
      ++at;
    }
    return at;
  };
  return line.substr(0, boundary(kFirst)) + " … " + line.substr(boundary(line.size() - kLast));
}

}  // namespace

std::optional<std::size_t> FindInvalidUtf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = CharacterLength(text.substr(at));
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::nullopt;
}

std::string ForTerminal(std::string_view message) {
  constexpr std::size_t kMostLines = 60;
  std::string shown;
  for (std::size_t line = 0; line < kMostLines; ++line) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    shown += Shortened(Escaped(message.substr(0, end)));
    message.remove_prefix(end);
    if (message.empty()) {
      return shown;
    }
    message.remove_prefix(1);
    shown += '\n';
  }
  return shown + "and more lines";
}

}  // namespace dcsim
