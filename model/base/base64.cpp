#include "model/base/base64.h"

#include <cstdint>

namespace dcsim {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<std::string> FindBase64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool padded = i >= text.size() - padding;
    const std::size_t digit = padded ? 0 : kAlphabet.find(text[i]);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    group = group << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 == 3) {
      bytes += static_cast<char>(group >> 16 & 0xff);
      bytes += static_cast<char>(group >> 8 & 0xff);
      bytes += static_cast<char>(group & 0xff);
      group = 0;
    }
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

std::string PrintBase64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto byte = i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U;
      group = group << 8 | byte;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? kAlphabet[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace dcsim
