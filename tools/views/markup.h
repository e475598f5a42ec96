#pragma once

#include <string>
#include <string_view>

namespace dcsim {

/// Text as HTML and SVG show it: those of its characters that are in `special`, of & < > and ", as
/// entities.
std::string EscapeMarkup(std::string_view text, std::string_view special);

}  // namespace dcsim
