#pragma once

#include <string>

#include "model/ir/document.h"

namespace dcsim {

/// An answer of dc-sim as its file holds it: `versions` says which dc-sim gave it, version and
/// commit.
std::string PrintAnswer(Json document);

/// {"dc-sim": "0.1.0 4f2026d8"}.
Json AnsweringVersion();

}  // namespace dcsim
