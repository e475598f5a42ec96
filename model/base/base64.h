#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dcsim {

/// Bytes of base64 text with padding (RFC 4648), or nothing when it is none.
std::optional<std::string> FindBase64(std::string_view text);

/// Base64 text with padding.
std::string PrintBase64(std::string_view bytes);

}  // namespace dcsim
