#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dcsim {

/// Position of the first byte that is no part of a well-formed UTF-8 character (Unicode 15, table
/// 3-7: no overlong forms, surrogates, or code points above 10FFFF), or nothing.
std::optional<std::size_t> FindInvalidUtf8(std::string_view text);

/// A message as a terminal may show it, whatever a file or an argument has put into it: control
/// characters but line ends and tabs, and bytes that are no UTF-8, as "\\x1b"; of a line longer
/// than 600 bytes the first 400 and the last 150, of more than 60 lines the first 60.
std::string ForTerminal(std::string_view message);

}  // namespace dcsim
