#pragma once

#include <string>

#include "model/ir/document.h"

namespace dcsim {

/// A document as every file of the tools holds it: lists and objects of up to 120 characters on one
/// line, longer ones over several, indented by a space a level; longer lists of numbers and words
/// fill their lines. Ends with a line break.
std::string PrintJson(const Json& document);

}  // namespace dcsim
