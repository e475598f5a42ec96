#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dcsim {

/// Position of the first byte that is no part of a well-formed UTF-8 character (Unicode 15, table
/// 3-7: no overlong forms, surrogates, or code points above 10FFFF), or nothing.
std::optional<std::size_t> FindInvalidUtf8(std::string_view text);

}  // namespace dcsim
