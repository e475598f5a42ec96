#pragma once

#include <random>
#include <string>

#include "model/ir/document.h"

namespace dcsim {

/// A random number of the generator below `count` >= 1, the same everywhere.
std::size_t Below(std::mt19937_64& random, std::size_t count);

/// A document with one of its values, at any depth, replaced by one of another kind or size,
/// left out, or doubled.
Json MutateJson(Json document, std::mt19937_64& random);

/// A text with a few of its bytes left out, replaced or doubled.
std::string MutateText(std::string text, std::mt19937_64& random);

}  // namespace dcsim
