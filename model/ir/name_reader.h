#pragma once

#include <optional>
#include <string>

#include "model/ir/document.h"

namespace dcsim {

/// A name of which files and folders are made: 1 to 200 letters, digits, '.', '-' and '_', of which
/// the first is no '.'. So it leads to no other folder. As the other readers.
std::optional<std::string> ReadName(const Json& value, const Path& path, Faults& faults);

}  // namespace dcsim
