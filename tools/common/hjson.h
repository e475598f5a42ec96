#pragma once

#include <string>
#include <string_view>

#include "tools/common/yaml_document.h"

namespace dcsim {

/// Reads a .json file as DeepSpeed does, which takes Hjson: JSON with comments (#, // and /* */),
/// commas that may be missing or trail, keys and texts without quotes, and no braces needed around
/// the whole.
///
/// Throws Error "`file`:line:column: …" where the text is none, holds a key twice, or nests deeper
/// or holds more than a plan can.
YamlDocument ParseHjson(std::string_view text, const std::string& file);

/// True for what ParseHjson reads rather than YAML: a name in .json, .jsonc or .hjson, or another
/// name than .yaml and .yml whose first character, comments aside, is a brace.
bool IsHjson(std::string_view text, const std::string& file);

}  // namespace dcsim
